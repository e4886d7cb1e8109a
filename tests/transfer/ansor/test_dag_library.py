"""DAGs by hash and shapes, and reports on logs."""

import json

import pytest

from tests.transfer.ansor.fixtures import library, load, workload
from tvm_ext.transfer.ansor import DagError, DagLibrary, replay_report
from tvm_ext.transfer.ansor_log import read_ansor_line
from tvm_ext.transfer.record import Skipped, Source, Workload

HASH = "0" * 32
TASK = {
    "key": HASH,
    "shapes": [[8], [8]],
    "dag": "a = PLACEHOLDER [8]\nb(i) = (a[i] + 1f)\nc(i) = (b[i]*2f)",
}


def test_every_task_is_found_and_parsed_once():
    for task in load("tasks"):
        dag = library().find(workload(task))
        assert [list(shape) for _, shape in dag.arguments] == task["shapes"]
        assert library().find(workload(task)) is dag


def test_a_file_of_tasks(tmp_path):
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([TASK]), "utf-8")
    dag = DagLibrary.load(path).find(Workload(HASH, ((8,), (8,)), "dag"))
    assert [stage.name for stage in dag.stages] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "isn't JSON"), ("{}", "is no list of objects"), ("[1]", "is no list of objects"),
     ('[{"key": "0"}]', "task 0: shapes is None, no list")],
)  # fmt: skip
def test_a_file_of_something_else(tmp_path, text, message):
    path = tmp_path / "tasks.json"
    path.write_text(text, "utf-8")
    with pytest.raises(DagError, match=message):
        DagLibrary.load(path)


def test_other_shapes_have_another_text():
    with pytest.raises(DagError, match="no text is known for this hash with these shapes"):
        DagLibrary([TASK]).find(Workload(HASH, ((9,), (9,)), "dag"))


def record(steps, key=HASH, error=0, line=1):
    workload_key = json.dumps([key, [8], [8]])
    task = [workload_key, "llvm", [1, 64, 64, 0, 0, 0, 0, 0], "", 1, []]
    text = json.dumps({"i": [task, [[], steps]], "r": [[0.001], error, 0.1, 1], "v": "v0.6"})
    return read_ansor_line(text.encode(), Source("a.json", line))


def test_a_report_counts_what_failed_and_why():
    entries = [
        record([["CI", 1], ["SP", 2, 0, 8, [4], 1]], line=1),
        record([["CI", 1], ["SP", 2, 0, 9, [3], 1]], line=2),
        record([["SP", 2, 0, 9, [3], 1]], line=3),
        record([["CI", 1]], key="f" * 32, line=4),
        record([["CI", 1]], error=1, line=5),
        Skipped(Source("a.json", 6), "not JSON"),
        Skipped(Source("b.json", 1), "not JSON"),
    ]
    first, second = replay_report(entries, DagLibrary([TASK]).find)
    assert (first.path, second.path) == ("a.json", "b.json")
    assert (first.replayed, first.tried, first.unmeasured, first.unreadable) == (1, 4, 1, 1)
    assert [(f.source.line, f.step, f.kind) for f in first.failures] == [
        (2, 1, "SP"), (3, 0, "SP"), (4, None, ""),
    ]  # fmt: skip
    assert str(first.failures[0]) == (
        "a.json, line 2, step 1 (SP): i0 of c is 8 long, in the record 9"
    )
    assert str(first) == (
        "a.json: 1 of 4 replayed; 1 unmeasured, 1 unreadable\n"
        "  2 x SP: i0 of c is 8 long, in the record 9\n"
        "  1 x no text is known for this hash with these shapes"
    )
    assert str(second) == "b.json: 0 of 0 replayed; 0 unmeasured, 1 unreadable"
