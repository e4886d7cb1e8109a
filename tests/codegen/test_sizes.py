"""Sizes as text."""

import pytest

from tvm_ext.codegen.errors import AcceleratorError
from tvm_ext.codegen.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("512KiB", 512 * 1024),
        ("1MiB", 1048576),
        ("1.5 mib", 1572864),
        ("256 MiB", 2**28),
        ("2GiB", 2**31),
        ("300000", 300000),
        (" 7 B ", 7),
        ("64kB", 64000),
        ("1MB", 10**6),
        (4096, 4096),
    ],
)
def test_sizes(text: str | int, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "KiB", "-1", "1KiBB", "1 2", "5 bits", "1e3", "0x10"])
def test_other_texts(text: str) -> None:
    with pytest.raises(AcceleratorError, match="can't be read; allowed: a number"):
        parse_size(text)


def test_parts_of_bytes() -> None:
    with pytest.raises(AcceleratorError, match=r"is 0\.5 bytes; allowed: whole bytes"):
        parse_size("0.5")


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(512 * 1024, "512 KiB"), (2**20, "1 MiB"), (2**31, "2 GiB"), (1000, "1000 B"), (0, "0 B")],
)
def test_shown(nbytes: int, text: str) -> None:
    assert format_size(nbytes) == text
    assert parse_size(text) == nbytes
