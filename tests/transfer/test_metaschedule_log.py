"""MetaSchedule's databases, against TVM's own reader, and each defect by its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tvm
import tvm_ffi

from tests.transfer.log_lines_of import database, matmul
from tvm_ext.errors import LogError
from tvm_ext.transfer import Record, Skipped, load_module, read_log
from tvm_ext.transfer.metaschedule_target import target_line
from tvm_ext.transfer.metaschedule_workloads import RECORD_FILE, WORKLOAD_FILE


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("logs") / "database"
    return directory, database(directory)


@pytest.fixture
def copied(written: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy to damage."""
    for name in (RECORD_FILE, WORKLOAD_FILE):
        (tmp_path / name).write_bytes((written[0] / name).read_bytes())
    return tmp_path


def records_of(path: Path) -> list[Record]:
    found = list(read_log(path))
    assert all(isinstance(entry, Record) for entry in found)
    return [entry for entry in found if isinstance(entry, Record)]


def test_as_tvm_reads_it(written: tuple[Path, Any]) -> None:
    directory, stored = written
    ours, theirs = records_of(directory), stored.get_all_tuning_records()
    assert len(ours) == len(theirs) == 6
    numbers = [tvm_ffi.structural_hash(matmul(rows)) for rows in (4, 6)]
    # TVM's order is that of the medians.
    key = lambda r: (r.workload.arguments, r.median)  # noqa: E731
    by_time = sorted(ours, key=key)
    for rows, number in zip((4, 6), numbers, strict=True):
        fast, middle, failed = [r for r in by_time if r.workload.arguments[0][1] == (rows, 8)]
        assert int(fast.workload.key) % 2**64 == number % 2**64
        assert fast.workload.kind == "structural"
        assert fast.workload.arguments == (
            ("float32", (rows, 8)), ("float32", (8, 6)), ("float32", (rows, 6)),
        )  # fmt: skip
        assert fast.seconds == pytest.approx((4e-6,), rel=1e-6)
        assert middle.seconds == pytest.approx((3e-5, 1e-5, 2e-5), rel=1e-6)
        assert middle.median == pytest.approx(2e-5, rel=1e-6)
        assert (failed.error, failed.seconds) == ("measurement_failed", ())
    assert {r.target for r in ours} == {"llvm -keys=cpu -mcpu=znver4 -num-cores=2"}
    assert {r.device for r in ours} == {"cpu"}
    traces = {json.dumps(r.steps) for r in ours}
    assert traces == {json.dumps(tvm_json(t.trace.as_json())) for t in theirs}
    assert all(hash(r) for r in ours)


def tvm_json(value: Any) -> Any:
    """TVM's arrays and numbers as Python's."""
    if isinstance(value, str):
        return str(value)
    try:
        return [tvm_json(item) for item in value]
    except TypeError:
        return int(value)


def test_modules_are_loaded_when_asked_for(written: tuple[Path, Any]) -> None:
    first, *_, last = records_of(written[0])
    for record, rows in ((first, 4), (last, 6)):
        tvm.ir.assert_structural_equal(load_module(record.workload), matmul(rows))


def test_any_name_of_a_database(written: tuple[Path, Any]) -> None:
    directory = written[0]
    expected = records_of(directory)
    assert records_of(directory / RECORD_FILE) == expected
    assert records_of(directory / WORKLOAD_FILE) == expected


def test_not_measured(copied: Path) -> None:
    lines = (copied / RECORD_FILE).read_bytes()
    (copied / RECORD_FILE).write_bytes(lines.replace(b"[10000000000]", b"null"))
    assert [r.error for r in records_of(copied)] == [None, "not_measured", None] * 2


def edit(path: Path, change: Callable[[list[Any]], object]) -> None:
    """Change what the first record holds."""
    first, *rest = (path / RECORD_FILE).read_text().splitlines(keepends=True)
    data = json.loads(first)
    change(data)
    (path / RECORD_FILE).write_text(json.dumps(data) + "\n" + "".join(rest))


@pytest.mark.parametrize(
    ("change", "reason", "detail"),
    [
        (lambda d: d.__setitem__(0, 2), "unknown workload", "2; "),
        (lambda d: d.__setitem__(0, -1), "unknown workload", "-1; "),
        (lambda d: d.__setitem__(0, "0"), "not a MetaSchedule record", "a workload's number"),
        (lambda d: d.pop(), "not a MetaSchedule record", "a workload's number"),
        (lambda d: d[1].pop(), "not a MetaSchedule record", "trace, seconds, target"),
        (lambda d: d[1].__setitem__(1, [0.0]), "bad time", "0.0 s"),
        (lambda d: d[1].__setitem__(1, [float("nan")]), "bad time", "nan s"),
        (lambda d: d[1].__setitem__(1, []), "bad time", "[]"),
        (lambda d: d[1].__setitem__(1, 1), "bad time", "allowed: a list"),
        (lambda d: d[1].__setitem__(2, "llvm"), "bad target", "no object with a kind"),
        (lambda d: d[1].__setitem__(2, {"mcpu": "x"}), "bad target", "no object with a kind"),
        (lambda d: d[1].__setitem__(2, {"kind": "\x1b"}), "bad target", "no printable text"),
        (lambda d: d[1].__setitem__(3, None), "bad arguments", "no list"),
        (lambda d: d[1][3].append(["TENSOR", "int8", [0]]), "bad arguments", "argument 4"),
        (lambda d: d[1][3].append(["TENSOR", "int8", ["n"]]), "bad arguments", "argument 4"),
        (lambda d: d[1][3].append(["SCALAR", "int8", [1]]), "bad arguments", "argument 4"),
        (lambda d: d[1].__setitem__(0, []), "malformed trace", "instructions and decisions"),
        (lambda d: d[1].__setitem__(0, [1, 2]), "malformed trace", "instructions and decisions"),
        (lambda d: d[1][0][0].append(["Split", []]), "malformed trace", "instruction 4"),
        (lambda d: d[1][0][1].append([4, [1]]), "malformed trace", "decision 0"),
        (lambda d: d[1][0][1].append(3), "malformed trace", "decision 0"),
    ],
)
def test_defects(
    copied: Path, change: Callable[[list[Any]], object], reason: str, detail: str
) -> None:
    edit(copied, change)
    skipped, *rest = read_log(copied)
    assert isinstance(skipped, Skipped)
    assert (skipped.source.line, skipped.reason) == (1, reason)
    assert detail in skipped.detail
    assert len(rest) == 5 and all(isinstance(entry, Record) for entry in rest)


def test_damaged_lines(copied: Path) -> None:
    first, second, *rest = (copied / RECORD_FILE).read_bytes().splitlines(keepends=True)
    lines = (first[:80] + first, first[:80] + b"\n", first.strip() + second, *rest)
    (copied / RECORD_FILE).write_bytes(b"".join(lines))
    entries = list(read_log(copied))
    assert [e.reason for e in entries if isinstance(e, Skipped)] == [
        "several records in one line", "truncated line", "several records in one line",
    ]  # fmt: skip
    assert len(entries) == 7


def test_a_damaged_workload(copied: Path) -> None:
    lines = (copied / WORKLOAD_FILE).read_bytes().splitlines(keepends=True)
    (copied / WORKLOAD_FILE).write_bytes(lines[0][:500] + b"\n" + lines[1])
    broken, *rest = read_log(copied)
    assert isinstance(broken, Skipped)
    assert broken.source.path.endswith(WORKLOAD_FILE)
    assert broken.reason == "not a MetaSchedule workload"
    assert [r.reason for r in rest if isinstance(r, Skipped)] == ["unreadable workload"] * 3
    assert [r.workload.arguments[0][1] for r in rest if isinstance(r, Record)] == [(6, 8)] * 3


def test_no_workload_file(copied: Path) -> None:
    (copied / WORKLOAD_FILE).unlink()
    with pytest.raises(LogError, match=r"database_workload\.json isn't beside it"):
        list(read_log(copied))


def test_files_named_otherwise(copied: Path) -> None:
    for name in (RECORD_FILE, WORKLOAD_FILE):
        (copied / name).rename(copied / name.replace("database", "net"))
    assert len(records_of(copied / "net_tuning_record.json")) == 6


def test_modules_that_are_gone(copied: Path) -> None:
    workload = records_of(copied)[-1].workload
    lines = (copied / WORKLOAD_FILE).read_bytes().splitlines(keepends=True)
    (copied / WORKLOAD_FILE).write_bytes(lines[0])
    with pytest.raises(LogError, match="line 2: no such line"):
        load_module(workload)
    (copied / WORKLOAD_FILE).write_bytes(lines[0] * 2)
    with pytest.raises(LogError, match="the file has changed"):
        load_module(workload)
    (copied / WORKLOAD_FILE).write_text(f'{lines[0].decode()}["{workload.key}", "AAAA"]\n')
    with pytest.raises(LogError, match="line 2: TVM can't load the module"):
        load_module(workload)


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ({"kind": "llvm"}, "llvm"),
        ({"tag": "", "kind": "cuda", "keys": ["cuda", "gpu"], "arch": "sm_86", "libs": []},
         "cuda -arch=sm_86 -keys=cuda,gpu"),
        ({"kind": "llvm", "num-cores": 4, "host": {"kind": "llvm", "fast": True}},
         'llvm -host={"fast":true,"kind":"llvm"} -num-cores=4'),
    ],
)  # fmt: skip
def test_target_line(target: dict[str, Any], line: str) -> None:
    assert target_line(target) == line
