"""Kept records: what is dropped, what a file looks like, what is refused."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, record
from tvm_ext.errors import ArtifactError, TuningError
from tvm_ext.transfer import bank_kernel
from tvm_ext.transfer.bank import Bank, Provenance

CONV, OTHER = record(conv(4, 8, 6, 3), 2e-6), record(conv(4, 8, 7, 3, 1, ()), 5e-6)
HERE = Provenance("a model, search", 2)


def filled() -> Bank:
    bank = Bank("znver4")
    assert bank.add([CONV, OTHER], HERE) == 2
    return bank


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def write(path: Path, lines: list[str]) -> None:
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


def test_records_are_found_by_kernel_and_by_class() -> None:
    bank = filled()
    assert bank.exact(CONV.workload) == [CONV]
    assert bank.exact("0") == []
    assert bank.of_class(("nn.conv2d", "add", "nn.relu")) == [CONV]
    assert bank.of_class(("nn.conv2d",)) == [OTHER]
    assert bank.provenance(OTHER) == HERE
    assert bank.donors == {"a model, search": [CONV, OTHER]}


def test_only_the_fastest_three_stay() -> None:
    bank = Bank("znver4")
    many = [replace(CONV, trace=str(i), seconds=float(i)) for i in (4, 2, 5, 1, 3)]
    assert bank.add(many, HERE) == 3
    assert [r.seconds for r in bank.exact(CONV.workload)] == [1, 2, 3]
    # A repeat counts with its best time, and a failed one not at all.
    again = [replace(many[2], seconds=0.5), replace(CONV, seconds=math.inf)]
    assert bank.add(again, Provenance("later", 1)) == 1
    assert [r.trace for r in bank.exact(CONV.workload)] == ["5", "1", "2"]
    assert bank.add(again, HERE) == 0


def test_a_file_gives_an_equal_bank(tmp_path: Path) -> None:
    bank = filled()
    bank.save(tmp_path / "a.jsonl.gz")
    again = Bank.load(tmp_path / "a.jsonl.gz")
    assert again.mcpu == "znver4"
    assert sorted(again, key=lambda r: r.seconds) == [replace(r, target="znver4") for r in bank]
    assert again.of_class(CONV.ops)[0].stages == CONV.stages
    assert again.provenance(again.exact(CONV.workload)[0]) == HERE
    again.save(tmp_path / "b.jsonl.gz")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_the_schema(tmp_path: Path) -> None:
    """The form that the docstring documents."""
    filled().save(tmp_path / "bank.gz")
    header, *rest = [json.loads(line) for line in lines_of(tmp_path / "bank.gz")]
    assert header == {"schema": 1, "mcpu": "znver4"}
    assert [sorted(line) for line in rest] == 2 * [
        ["module", "ops", "workload"],
        ["seconds", "source", "threads", "trace", "workload"],
    ]


@pytest.mark.parametrize(
    ("number", "line", "message"),
    [
        (0, '{"schema": 2, "mcpu": "x"}', "has schema 2; allowed: up to 1"),
        (0, "[]", "line 1: not a bank's header"),
        (1, '{"workload": "1", "module": 3}', "line 2: not a bank record"),
        (1, '{"workload": "1", "module": "", "ops": "add"}', "line 2: not a bank record"),
        (1, "[]", "line 2: not a bank record"),
        (2, '{"workload": "1", "trace": [], "seconds": 1, "threads": 1, "source": ""}', "line 3"),
        (2, "{", "line 3: not a bank record"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, number: int, line: str, message: str) -> None:
    path = tmp_path / "bank.gz"
    filled().save(path)
    lines = lines_of(path)
    lines[number] = line
    write(path, lines)
    with pytest.raises(TuningError, match=message):
        Bank.load(path)


def with_line(path: Path, **changes: object) -> Bank:
    """A bank of two kernels whose first one's line has been changed in the file."""
    filled().save(path)
    lines = lines_of(path)
    lines[1] = json.dumps({**json.loads(lines[1]), **changes})
    write(path, lines)
    return Bank.load(path)


def test_functions_are_read_when_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled().save(tmp_path / "bank.gz")
    bank = Bank.load(tmp_path / "bank.gz")
    read: list[str] = []
    original = bank_kernel.Workload.from_json

    def counted(data: list[str]) -> Any:
        read.append(data[0])
        return original(data)

    monkeypatch.setattr(bank_kernel.Workload, "from_json", counted)
    merged = Bank("znver4")
    merged.merge(bank)
    for each in (bank, merged):
        assert len(each) == 2
        assert each.classes == {CONV.ops, OTHER.ops}
        assert each.exact("0") == each.of_class(("matmul",)) == []
        each.save(tmp_path / "again.gz")
    assert read == []
    assert bank.of_class(OTHER.ops)[0].stages == OTHER.stages
    assert read == [OTHER.workload]
    # What it has found out about the function stays with a record.
    assert bank.of_class(OTHER.ops)[0] is bank.exact(OTHER.workload)[0]
    assert read == [OTHER.workload]
    assert (tmp_path / "again.gz").read_bytes() == (tmp_path / "bank.gz").read_bytes()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"module": "AAAA"}, ""),
        ({"ops": ["matmul"]}, r"its operators are \['nn.conv2d'.*not \['matmul'\]"),
    ],
)
def test_a_damaged_function_is_told_with_file_and_line(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    bank = with_line(tmp_path / "bank.gz", **changes)
    key = json.loads(lines_of(tmp_path / "bank.gz")[1])["workload"]
    for access in (lambda: bank.exact(key), lambda: list(bank), lambda: bank.donors):
        with pytest.raises(TuningError, match=rf"bank\.gz, line 2: not a bank record .*{reason}"):
            access()
    (other,) = {CONV.workload, OTHER.workload} - {key}
    assert len(bank.exact(other)) == 1


def test_a_function_of_another_kernel_is_refused(tmp_path: Path) -> None:
    filled().save(tmp_path / "bank.gz")
    lines = lines_of(tmp_path / "bank.gz")
    one, other = (json.loads(lines[i]) for i in (1, 3))
    bank = with_line(tmp_path / "bank.gz", module=other["module"], ops=other["ops"])
    with pytest.raises(TuningError, match=r"bank\.gz, line 2: not a bank record"):
        bank.exact(one["workload"])


def test_files_without_classes_are_read(tmp_path: Path) -> None:
    """As banks were written at first."""
    filled().save(tmp_path / "bank.gz")
    lines = [json.loads(line) for line in lines_of(tmp_path / "bank.gz")]
    for line in lines:
        line.pop("ops", None)
    write(tmp_path / "old.gz", [json.dumps(line) for line in lines])
    bank = Bank.load(tmp_path / "old.gz")
    assert bank.classes == {CONV.ops, OTHER.ops}
    assert len(bank.of_class(CONV.ops)) == 1


@pytest.mark.parametrize("seconds", ["NaN", "0", "-1", "Infinity"])
def test_times_are_checked(tmp_path: Path, seconds: str) -> None:
    path = tmp_path / "bank.gz"
    filled().save(path)
    lines = lines_of(path)
    data = json.loads(lines[2])
    data["seconds"] = float(seconds)
    lines[2] = json.dumps(data)
    write(path, lines)
    with pytest.raises(TuningError, match=r"line 3: \S+ s; allowed: finite, above 0"):
        Bank.load(path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bank.gz"
    filled().save(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TuningError, match="can't read the bank"):
        Bank.load(path)
    with pytest.raises(TuningError, match="can't read the bank"):
        Bank.load(tmp_path / "none.gz")
    with pytest.raises(ArtifactError, match="can't write"):
        filled().save(tmp_path / "no" / "folder.gz")


def test_a_cpu_without_records_has_an_empty_bank() -> None:
    bank = Bank.shipped(replace(HOST, llvm={"kind": "llvm", "mcpu": "no-such-cpu"}))
    assert (len(bank), bank.mcpu) == (0, "no-such-cpu")
