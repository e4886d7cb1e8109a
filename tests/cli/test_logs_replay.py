"""`tvm-ext logs replay`: its counts against records made up, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import fails, run_command
from tests.transfer.log_lines_of import HASH, ansor, write

KEY = json.dumps([HASH, [8], [8]])
TASK = {
    "workload_key": KEY,
    "dag": "a = PLACEHOLDER [8]\nb(i) = (a[i] + 1f)\nc(i) = (b[i]*2f)",
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    lines = (
        ansor([0.001], key=KEY, steps=[["CI", 1], ["SP", 2, 0, 8, [4], 1]]),
        ansor([0.001], key=KEY, steps=[["CI", 1], ["SP", 2, 0, 9, [3], 1]]),
        ansor([0.001], key=KEY, steps=[["CA", 1, 2, 4]]),
        ansor([1e10], key=KEY, error=7),
        b"hello\n",
    )
    return write(tmp_path / "log.json", *lines)


@pytest.mark.parametrize("whole", [False, True])
def test_counts_and_reasons(log: Path, tmp_path: Path, whole: bool) -> None:
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps({"model": "m", "tasks": [TASK]} if whole else [TASK]))
    result = run_command("logs", "replay", log, "--tasks", tasks, "--failures")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        f"{log}: 1 of 3 replayed; 1 unmeasured, 1 unreadable",
        "  1 x SP: i0 of c is 8 long, in the record 9",
        "  1 x CA: c has 1 iterators, none is 4",
        f"  {log}, line 2, step 1 (SP): i0 of c is 8 long, in the record 9",
        f"  {log}, line 3, step 0 (CA): c has 1 iterators, none is 4",
    ]


def test_without_the_tasks(log: Path) -> None:
    result = run_command("logs", "replay", log)
    assert result.stdout.splitlines()[1:] == [
        "  3 x no text is known for this hash with these shapes"
    ]


def test_a_named_workload_needs_none(tmp_path: Path) -> None:
    key = '["matmul_add", 4, 8, 6, "float32"]'
    log = write(tmp_path / "log.json", ansor([0.001], key=key, steps=[["FU", 4, [0, 1]]]))
    result = run_command("logs", "replay", log)
    assert result.stdout == f"{log}: 1 of 1 replayed; 0 unmeasured, 0 unreadable\n"


def test_errors(log: Path, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.json"
    for content, message in (
        ("{", r"tasks\.json isn't JSON"),
        ('{"tasks": 1}', r"tasks\.json is no list of objects"),
        ("[" * 99999, r"tasks\.json isn't JSON"),
        ('[{"dag": ""}]', r"tasks\.json: task 0: key is None, no str"),
        ('[{"workload_key": 3}]', r"tasks\.json: task 0: workload_key is 3, no str"),
        ('[{"workload_key": "[]", "dag": ""}]', "task 0: bad workload key: no list that starts"),
        (json.dumps([{**TASK, "flops": "many"}]), "task 0: flops is 'many', no number"),
    ):
        tasks.write_text(content)
        fails(message, "logs", "replay", log, "--tasks", tasks)
    fails(r"gone\.json: No such file", "logs", "replay", log, "--tasks", tmp_path / "gone.json")
    fails(r"gone\.json: No such file", "logs", "replay", tmp_path / "gone.json")
    fails("Missing argument 'FILE...'", "logs", "replay", code=2)
    fails("no readable record", "logs", "replay", write(tmp_path / "text.json", b"hello\n"))


def test_help_has_examples() -> None:
    for words in (("replay", "--help"), ("--help",)):
        assert "tvm-ext logs replay resnet50.json" in run_command("logs", *words).stdout
