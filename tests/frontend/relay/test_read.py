"""Which form a file has, and reading it by its path or its text."""

import json
from pathlib import Path

import pytest

from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.read import (
    is_relay_json,
    is_relay_text,
    read_relay_json,
    read_relay_text,
)
from tvm_ext.frontend.relay.structural_equal import structurally_equal

from .block import block_json, block_module

DATA = Path(__file__).parent / "data"
JSON = DATA / "block.json"
TEXTS = [DATA / "block_0_0_4.relay.txt", DATA / "block_0_0_5.relay.txt"]


def test_files_are_told_apart():
    assert is_relay_json(JSON)
    assert is_relay_json(str(JSON))
    assert not is_relay_text(JSON)
    for path in TEXTS:
        assert is_relay_text(path)
        assert not is_relay_json(path)


@pytest.mark.parametrize(
    "text",
    [
        block_json("0.8.0"),
        json.dumps(json.loads(block_json("0.16.0")), sort_keys=True),
        json.dumps(json.loads(block_json("0.16.0")), indent=2),
        "\ufeff" + block_json("0.19.0"),
        '{"nodes": [{"type_key": ""}], "root": 0}',
    ],
)
def test_graphs_in_any_layout_of_json(tmp_path, text):
    (tmp_path / "m").write_text(text, encoding="utf-8")
    assert is_relay_json(tmp_path / "m")


@pytest.mark.parametrize(
    "text",
    [
        '#[version = "0.0.5"]\ndef @main() { 1 }',
        "v0.0.4\nfn (%x) {\n  %x\n}",
        "def @main(%x: int8) {\n  %x\n}",
        "// by hand\n/* twice */ fn (%x: int8) { %x }",
        "free_var %x: int8;\n%x",
    ],
)
def test_texts_in_any_form(tmp_path, text):
    (tmp_path / "m").write_text(text)
    assert is_relay_text(tmp_path / "m")
    assert not is_relay_json(tmp_path / "m")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x08\x07\x12\x04onnx",
        b"\xff\xfe\x00",
        b'{"nodes": [{"op": "null", "name": "x"}], "arg_nodes": [0]}',
        b'{"root_index": 3, "nodes": []}',
        b"# from tvm.script import ir as I\n@I.ir_module\nclass Module: ...",
        b"def main(x):\n    return x\n",
        b'[{"root": 1}]',
        b"/**/" * 1000 + b"x",
    ],
)
def test_other_files_are_neither(tmp_path, data):
    (tmp_path / "m").write_bytes(data)
    assert not is_relay_json(tmp_path / "m")
    assert not is_relay_text(tmp_path / "m")


def test_what_isnt_there_is_neither(tmp_path):
    for path in (tmp_path / "none", tmp_path, "a\0b"):
        assert not is_relay_json(path)
        assert not is_relay_text(path)


def test_paths_and_texts_are_read():
    expected = block_module()
    for source in (JSON, str(JSON), JSON.read_text()):
        assert structurally_equal(read_relay_json(source), expected)
    for path in TEXTS:
        for source in (path, str(path), path.read_text()):
            assert structurally_equal(read_relay_text(source), expected)
    assert read_relay_text("def @main() { 1 }").functions["main"].params == ()
    one_line = block_json("0.16.0").replace("\n", "")
    assert structurally_equal(read_relay_json(one_line), expected)


@pytest.mark.parametrize("read", [read_relay_json, read_relay_text])
def test_files_that_cant_be_read_are_errors(tmp_path, read):
    with pytest.raises(RelayError, match=r"none\.json: can't be read: No such file"):
        read(tmp_path / "none.json")
    with pytest.raises(RelayError, match="can't be read: Is a directory"):
        read(tmp_path)
    with pytest.raises(RelayError, match="can't be read: embedded null byte"):
        read("a\0b")
    (tmp_path / "m").write_bytes(b"\x08\xff\x12")
    with pytest.raises(RelayError, match="isn't a text: byte 1 is 0xff"):
        read(tmp_path / "m")


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(block_json("0.16.0")[:-9])
    with pytest.raises(RelayError, match=r"line \d+, column \d+: isn't whole JSON") as error:
        read_relay_json(path)
    assert error.value.source == str(path)
    assert error.value.where.startswith("line ")
