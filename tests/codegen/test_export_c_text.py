"""Texts, names and bytes as C source, by hand."""

import pytest

from tvm_ext.codegen.export.c_text import byte_rows, c_comment, c_name, c_string, word_row


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x", '"x"'),
        ('a "b" \\', '"a \\"b\\" \\\\"'),
        ("??=", '"\\?\\?="'),
        ("é1", '"\\303\\2511"'),
        ("\n", '"\\012"'),
    ],
)
def test_strings(text: str, wanted: str) -> None:
    assert c_string(text) == wanted


def test_comments_cannot_end_early() -> None:
    assert c_comment("a*/b/*c\\") == "a__b__c_"
    assert c_comment("x:0 (1, 2)") == "x:0 (1, 2)"


@pytest.mark.parametrize(
    ("text", "taken", "wanted"),
    [
        ("input x", (), "input_x"),
        ("output Conv/1:0", (), "output_conv_1_0"),
        ("é!", (), "tensor"),
        ("X", ("x",), "x_2"),
        ("x", ("x", "x_2"), "x_3"),
    ],
)
def test_names(text: str, taken: tuple[str, ...], wanted: str) -> None:
    assert c_name(text, taken) == wanted


def test_bytes_and_words() -> None:
    assert list(byte_rows(b"")) == []
    assert list(byte_rows(bytes(range(15, 32)))) == [
        "0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, "
        "0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e,",
        "0x1f,",
    ]
    assert word_row(b"\x01\x02\x03\x04\xff\0\0\0") == "0x04030201U, 0x000000ffU,"
