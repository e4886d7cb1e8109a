"""Ansor's records: every version and form, and each defect by its reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.transfer.log_lines_of import DATA, HASH, LLVM, ansor, edited
from tvm_ext.errors import RecordError
from tvm_ext.transfer import Record, Source, read_log
from tvm_ext.transfer.ansor_log import ERRORS, read_ansor_line
from tvm_ext.transfer.ansor_steps import STEP_FIELDS

SOURCE = Source("log.json", 7)


def read(line: bytes) -> Record:
    return read_ansor_line(line, SOURCE)


def fails(line: bytes, reason: str, detail: str = "") -> None:
    with pytest.raises(RecordError) as caught:
        read(line)
    assert caught.value.reason == reason
    assert detail in caught.value.detail


def test_every_version_and_form_of_key() -> None:
    """Against what a person reads in the file."""
    records = list(read_log(DATA / "ansor_versions.json"))
    assert all(isinstance(record, Record) for record in records)
    rows = [
        (r.source.line, r.version, r.workload.kind, str(r.workload)[:24], r.device, len(r.steps))
        for r in records
        if isinstance(r, Record)
    ]
    assert rows == [
        (3, "v0.2", "named", "conv2d_layer(1,7,7,512,5", "gpu", 37),
        (4, "v0.3", "named", "matmul_add(1024,1024,102", "cpu", 13),
        (5, "v0.5", "dag", "d7b65649a4dd54becea0a52a", "cpu", 20),
        (6, "v0.5", "dag", "55cbf5c26e54450d9266895c", "gpu", 29),
        (7, "v0.6", "named", "sparse_dense(512,512,512", "cpu", 14),
        (8, "v0.6", "dag", "2d10de6646307f0e3e5cf4b3", "gpu", 37),
        (9, "v0.6", "dag", "0e59a3dcf0c5ccd7968a9dd9", "cpu", 18),
        (10, "v0.6", "dag", "08f7449d79e570b7274174709"[:24], "cpu", 12),
        (11, "v0.5", "dag", "a9f02db6b0d4cdb4a2bd845d", "gpu", 32),
    ]


def test_the_parts_of_a_record() -> None:
    conv, matmul, softmax, bert, sparse, *_, dense, pool = read_log(DATA / "ansor_versions.json")
    assert isinstance(conv, Record) and isinstance(matmul, Record)
    assert isinstance(softmax, Record) and isinstance(sparse, Record)
    assert isinstance(dense, Record) and isinstance(pool, Record) and isinstance(bert, Record)
    assert conv.workload.arguments == (1, 7, 7, 512, 512, 3, 3, (1, 1), (1, 1))
    assert (conv.hardware, conv.layout_rewrite) == ((), None)
    assert conv.steps[:2] == (("CI", 5), ("SP", 3, 0, 1, (1, 1, 1, 1), 1))
    assert matmul.workload.arguments == (1024, 1024, 1024, "float32")
    assert (matmul.hardware, matmul.layout_rewrite) == ((18, 64, 64, 0, 0, 0, 0, 0), None)
    assert softmax.target == "llvm -keys=cpu -mcpu=core-avx2"
    assert softmax.layout_rewrite == 2
    assert softmax.workload.arguments == (1, 1000, 1, 1000)
    assert len(softmax.seconds) == 10
    # The fifth and sixth of the ten sorted times.
    assert softmax.median == pytest.approx((9.875e-06 + 1.0122e-05) / 2, rel=1e-12)
    assert softmax.valid and softmax.error is None
    assert bert.workload.arguments == ()
    assert sparse.workload.arguments[3:6] == ((9831, 16, 1), (9831,), (33,))
    assert (dense.error, dense.seconds, dense.median) == ("instantiation_error", (), float("inf"))
    assert (pool.error, pool.valid) == ("runtime_device_error", False)


def test_one_step_of_every_kind() -> None:
    steps: list[list[Any]] = [
        ["SP", 2, 0, 0, [1, 0], 1], ["FSP", 4, 0, 0, 2], ["FFSP", 4, 1, [0, 1], 1, 1],
        ["RE", 2, [1, 0]], ["FU", 2, [0, 1]], ["AN", 2, 0, 3], ["PR", 2, 0, "auto_unroll$16"],
        ["CA", 1, 2, 3], ["CI", 1], ["CR", 1], ["CHR", 1, "shared", [2]], ["CHW", 2, "local"],
        ["RF", 3, 2, 1], ["SA", 2, 0, 32, 16],
    ]  # fmt: skip
    assert {kind for kind, *_ in steps} == set(STEP_FIELDS)
    found = read(ansor(steps=steps)).steps
    assert json.loads(json.dumps(found)) == steps
    assert hash(found)


def test_the_fields_of_each_kind() -> None:
    """In the order of TVM's writers, ``src/auto_scheduler/transform_step.cc``."""
    wanted = "SP iiiLi FSP iiii FFSP iiLii RE iL FU iL AN iii PR iis CA iii CI i CR i"
    wanted += " CHR isL CHW is RF iii SA iiii"
    words = wanted.split()
    assert dict(STEP_FIELDS) == dict(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize("number", range(1, 9))
def test_error_numbers(number: int) -> None:
    record = read(ansor([1e10], error=number))
    assert record.error == ERRORS[number]
    assert not record.valid


def test_tensors_and_numbers_in_a_named_key() -> None:
    key = '["dense", ["TENSOR", [4, 8], "float32"], 0.6, null, true, [[0, 1], [2]]]'
    arguments = read(ansor(key=key)).workload.arguments
    assert arguments == (("TENSOR", (4, 8), "float32"), 0.6, None, True, ((0, 1), (2,)))


def test_truncated_anywhere() -> None:
    line = ansor([0.5, 1e-7]).strip().replace(b"1.5", b"1.5e+10")
    for cut in range(1, len(line)):
        fails(line[:cut], "truncated line")
    fails(line[:100], "truncated line", "100 characters")


@pytest.mark.parametrize("cut", [1, 9, 40, 150, 230])
def test_two_records_in_a_line(cut: int) -> None:
    line = ansor().strip()
    fails(line[:cut] + line, "several records in one line", f"column {cut + 1}")
    fails(line + line, "several records in one line", f"column {len(line) + 1}")


def test_a_key_twice() -> None:
    fails(ansor().replace(b'"v":', b'"r": 1, "v":'), "several records in one line", "twice")


@pytest.mark.parametrize(
    ("seconds", "detail"),
    [
        ([float("nan")], "nan s"), ([0], "0 s"), ([0.0], "0.0 s"), ([-1e-3], "-0.001 s"),
        ([1e-3, -1.0], "-1.0 s"), ([float("inf")], "inf s"), ([], "[]"), (["1"], "'1' s"),
        ([True], "True s"), ([None], "None s"), ([1e10], "10000000000.0 s"), ([10**400], "s"),
    ],
)  # fmt: skip
def test_times(seconds: list[Any], detail: str) -> None:
    fails(ansor(seconds), "bad time", detail)


@pytest.mark.parametrize("version", ["v0.1", "v0.7", "", None, 6, ["v0.6"]])
def test_versions(version: Any) -> None:
    fails(ansor(version=version), "unknown version", "allowed: v0.2 to v0.6")


@pytest.mark.parametrize("number", [-1, 9, 1.0, True, "1", None])
def test_unknown_error_numbers(number: Any) -> None:
    fails(ansor(error=number), "unknown error number", "allowed: 0 to 8")


@pytest.mark.parametrize(
    ("step", "reason", "detail"),
    [
        (["XX", 1], "unknown step kind", "step 1 is 'XX'; allowed: SP, FSP, FFSP, RE"),
        (["CI"], "malformed step", "step 1, CI, has 0 fields, not 1"),
        (["CI", 1, 2], "malformed step", "step 1, CI, has 2 fields, not 1"),
        (["CI", 1.0], "malformed step", "step 1, CI: field 1 isn't an integer"),
        (["CI", True], "malformed step", "field 1 isn't an integer"),
        (["RE", 1, [0, None]], "malformed step", "field 2 isn't a list of integers"),
        (["RE", 1, 0], "malformed step", "field 2 isn't a list of integers"),
        (["CHW", 1, 2], "malformed step", "field 2 isn't a text"),
        ([], "malformed step", "step 1"), ("CI", "malformed step", "step 1"),
        ([["CI"], 1], "malformed step", "step 1"), (None, "malformed step", "step 1"),
    ],
)  # fmt: skip
def test_steps(step: Any, reason: str, detail: str) -> None:
    fails(ansor(steps=[["CI", 1], step]), reason, detail)


@pytest.mark.parametrize(
    ("key", "detail"),
    [
        (f'["{HASH}", [1, "2"]]', 'argument 1 is [1, "2"]; allowed: a size or a list of sizes'),
        (f'["{HASH}", [1], [1.5]]', "argument 2 is [1.5]"), (f'["{HASH}", [[1]]]', "[[1]]"),
        (f'["{HASH}", [0]]', "above 0"), (f'["{HASH}", -4]', "-4"), (f'["{HASH}", null]', "null"),
        (f'["{HASH}", [true]]', "[true]"), (f'["{HASH}", NaN]', "NaN"),
        ('["f", [1, "x"]]', "a number, a text, null"), ('["f", {"a": 1}]', '{"a": 1}'),
        ('["f", [[1], "x"]]', "a list of integers or tensors"),
        ('["f", NaN]', "NaN"), ('["f", ["TENSOR", [0], "float32"]]', "TENSOR"),
        ('["f", ["TENSOR", 4, "float32"]]', "TENSOR"),
        ("[]", "starts with a hash or a name"), ("[1]", "starts with"), ("{}", "starts with"),
        ("[", "not JSON"), ("", "not JSON"), ("[" * 9000, "not JSON"),
        ('["\\u001b[31m"]', "no printable text"), ('["\\ud800"]', "no printable text"),
        ('[""]', "no printable text"),
    ],
)  # fmt: skip
def test_keys(key: str, detail: str) -> None:
    fails(ansor(key=key), "bad workload key", detail)


@pytest.mark.parametrize("target", ["", " ", "llvm\n", "\x1b[2Jllvm", "llvm \ud800"])
def test_targets(target: str) -> None:
    if target == "llvm\n":
        assert read(ansor(target=target)).target == "llvm"
    else:
        fails(ansor(target=target), "bad target", "no printable text")


@pytest.mark.parametrize(
    "line",
    [
        b"[]", b"3", b"null", b'"x"', b"{}", b'{"i": 1, "r": 2}',
        edited(lambda data: data.update(i=[])),
        edited(lambda data: data["i"].append(1)),
        edited(lambda data: data["i"].__setitem__(0, ["only a key"])),
        edited(lambda data: data["i"].__setitem__(0, [1, LLVM])),
        edited(lambda data: data["i"].__setitem__(1, [])),
        edited(lambda data: data["i"][0].__setitem__(2, "2 cores")),
        edited(lambda data: data["i"][0].__setitem__(2, [2, 0.5])),
        edited(lambda data: data["i"][0].__setitem__(4, "2")),
        edited(lambda data: data.update(r=[])),
        edited(lambda data: data.update(r={"0": 1})),
    ],
)  # fmt: skip
def test_other_json(line: bytes) -> None:
    fails(line, "not an Ansor record")


def test_other_text() -> None:
    fails(b"hello", "not JSON", "column 1")
    fails(ansor().strip() + b" tail", "not JSON", "more text from column")
    fails(b"\xff" + ansor(), "not UTF-8", "byte 1")
    fails(b"[" * 100_000, "nested too deep")
    fails(b'{"i": ' + b"9" * 5000 + b"}", "not JSON", "4300 digits")
    fails(b"\0" * 64, "not JSON")
