"""The schema of the records that come with the package, and files that break it."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.transfer.ansor.fixtures import load
from tests.transfer.log_lines_of import HASH, ansor, write
from tvm_ext.errors import LogError
from tvm_ext.transfer.ansor import replay, shipped_records
from tvm_ext.transfer.ansor.shipped import read_shipped
from tvm_ext.tuning_logs import make_ansor_records

HEADER = {
    "schema": 1, "network": "n", "target": "llvm", "tuner": "Ansor", "machine": "m", "threads": 1,
    "log": "n.json",
}  # fmt: skip
TASK = {
    "workload_key": json.dumps([HASH, [8], [8]]), "operators": "add", "weight": 2, "flops": 8.0,
    "dag": "a = PLACEHOLDER [8]\nb(i) = (a[i] + 1f)",
}  # fmt: skip
RECORD = {"line": 1, "version": "v0.6", "steps": [["SP", 1, 0, 8, [4], 1]], "seconds": [1e-3]}


def packed(path: Path, *lines: object) -> Path:
    text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_every_shipped_record():
    tasks = shipped_records()
    assert Counter(task.origin.network for task in tasks) == {"resnet50": 27, "inception_v1": 47}
    records = Counter()
    for task in tasks:
        records[task.origin.network] += len(task.records)
        assert task.workload.kind == "dag"
        assert task.origin.threads in (1, 2)
        assert "llvm" in task.origin.target
        assert task.weight >= 1 and task.flops > 0 and task.operators
        medians = [record.median for record in task.records]
        assert medians == sorted(medians)
        assert len({record.steps for record in task.records}) == len(task.records)
        for record in task.records:
            assert record.device == "cpu" and record.valid
            assert record.workload == task.workload
            assert replay(task.dag, record.steps).imperfect_splits == ()
    assert len({(task.origin.network, task.workload) for task in tasks}) == len(tasks)
    # Every valid record of the two logs.
    assert records == {"resnet50": 432, "inception_v1": 467}


def test_the_tasks_are_ansors():
    """Against the DAGs as Ansor printed them."""
    printed = {(t["key"], str(t["shapes"])): (t["dag"], t["flops"]) for t in load("tasks")}
    for task in shipped_records():
        shapes = [list(shape) for shape in task.workload.arguments]
        assert printed[task.workload.key, str(shapes)] == (task.text, task.flops)


def test_no_file_names_a_folder():
    for entry in (files("tvm_ext.tuning_logs") / "ansor").iterdir():
        text = gzip.decompress(entry.read_bytes()).decode()
        assert not re.search(r'"/|[\w.]/\w', text)
        assert len(entry.read_bytes()) < 1 << 16


def test_a_file_by_hand(tmp_path):
    path = packed(tmp_path / "n.jsonl.gz", HEADER, TASK, RECORD, {**RECORD, "line": 5})
    (task,) = read_shipped(path)
    assert (task.origin.machine, task.operators, task.weight, task.flops) == ("m", "add", 2, 8.0)
    assert [record.source.line for record in task.records] == [3, 4]
    assert task.records[0].steps == (("SP", 1, 0, 8, (4,), 1),)
    assert task.records[0].seconds == (1e-3,)
    assert task.dag.arguments == (("a", (8,)), ("b", (8,)))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "has no header"),
        ([{**HEADER, "schema": 2}], "line 1: unknown schema: 2; allowed: 1"),
        ([{**HEADER, "threads": "1"}], "line 1: bad header: threads is '1', no int"),
        ([{**HEADER, "extra": 1}], "line 1: bad header: it has no field 'extra'; allowed: schema"),
        ([HEADER, RECORD], "line 2: bad task: a record stands before the first task"),
        ([HEADER, {**TASK, "flops": True}], "line 2: bad task: flops is True, no float"),
        ([HEADER, {**TASK, "workload_key": "[]"}], "line 2: bad workload key"),
        ([HEADER, TASK, {**RECORD, "steps": [["XX"]]}], "line 3: unknown step kind"),
        ([HEADER, TASK, {**RECORD, "seconds": [0]}], "line 3: bad time"),
        ([HEADER, TASK, {**RECORD, "line": None}], "line 3: bad record: line is None, no int"),
        ([HEADER, "{\n"], "line 2: not JSON"),
        ([HEADER, "[]\n"], "line 2: not JSON: a line is an object"),
    ],
)
def test_broken_files(tmp_path, lines, message):
    path = packed(tmp_path / "n.jsonl.gz", *lines)
    with pytest.raises(LogError, match=message):
        read_shipped(path)


def test_not_a_file_of_ours(tmp_path):
    with pytest.raises(LogError, match=r"gone\.gz can't be read"):
        read_shipped(tmp_path / "gone.gz")
    path = packed(tmp_path / "n.jsonl.gz", HEADER)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LogError, match="can't be read"):
        read_shipped(path)


def test_the_tool_keeps_the_fastest(tmp_path):
    key, other = TASK["workload_key"], json.dumps([HASH, [6], [6]])
    steps = [[["SP", 1, 0, 8, [n], 1]] for n in (1, 2, 4, 8)]
    times = (4e-3, 1e-3, 3e-3, 2e-3)
    log = write(
        tmp_path / "log.json",
        *[ansor([t], key=key, steps=s) for t, s in zip(times, steps, strict=True)],
        ansor([5e-4], key=key, steps=steps[1]),
        ansor([1e10], key=key, steps=steps[0], error=7),
        ansor([1e-4], key=key, steps=steps[0], target="cuda -keys=cuda,gpu -max_num_threads=1024"),
    )  # fmt: skip
    described = {
        "model": "n", "target": "llvm",
        "tasks": [
            {**{k: TASK[k] for k in ("workload_key", "weight", "flops", "dag")}, "desc": "add"},
            {"workload_key": other, "weight": 1, "flops": 6.0, "dag": "", "desc": "untuned"},
        ],
    }  # fmt: skip
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps(described))
    words = [
        str(log),
        "--tasks",
        str(tasks),
        "--tuner",
        "Ansor",
        "--machine",
        "m",
        "--threads",
        "1",
    ]
    written = []
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        result = CliRunner().invoke(
            make_ansor_records.main, [*words, "-o", str(tmp_path / name), "--top", "2"]
        )
        assert result.output == f"{tmp_path / name}: 2 records, 1 tasks\n"
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    (task,) = read_shipped(tmp_path / "a.jsonl.gz")
    assert [record.median for record in task.records] == [5e-4, 2e-3]
    assert [record.steps[0][4] for record in task.records] == [(2,), (8,)]
