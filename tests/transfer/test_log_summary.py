"""What a log holds, counted by hand."""

from __future__ import annotations

from pathlib import Path

from tests.transfer.log_lines_of import CUDA, DATA, KEY, LLVM, ansor, write
from tvm_ext.transfer import Source, summarize_log


def test_by_hand(tmp_path: Path) -> None:
    other = KEY.replace("[4, 8]", "[6, 8]")
    path = write(
        tmp_path / "log.json",
        ansor([0.3, 0.1, 0.2]), ansor([0.4]), ansor([1e10], error=6), b"hello\n",
        ansor([0.25], target=CUDA, version="v0.5"), ansor([-1]), ansor([float("nan")]),
        ansor([1e10], key=other, error=6), ansor([1e10], key=other, error=1),
    )  # fmt: skip
    summary = summarize_log(path)
    assert (summary.format, summary.valid, summary.records) == ("ansor", 3, 6)
    assert {error: (t.count, t.first.line) for error, t in summary.failed.items()} == {
        "build_timeout_error": (2, 3), "instantiation_error": (1, 9),
    }  # fmt: skip
    assert summary.versions == {"v0.6": 5, "v0.5": 1}
    assert summary.targets == {(LLVM, "cpu"): 5, (CUDA, "gpu"): 1}
    rows = [(t, task.records, task.valid, task.best) for (_, t), task in summary.tasks.items()]
    assert rows == [
        (LLVM, 3, 2, 0.2), (CUDA, 1, 1, 0.25), (LLVM, 2, 0, float("inf")),
    ]  # fmt: skip
    assert summary.skipped.total == 3
    tally = summary.skipped.reasons["bad time"]
    assert (tally.count, tally.first) == (2, Source(str(path), 6))
    assert summary.skipped.lines() == [
        f"1 line: not JSON (first: {path}, line 4: Expecting value at column 1)",
        f"2 lines: bad time (first: {path}, line 6: -1 s; allowed: above 0 and below 1e10)",
    ]


def test_the_sample() -> None:
    summary = summarize_log(DATA / "ansor_versions.json")
    assert (summary.valid, summary.records, summary.skipped.total) == (7, 9, 0)
    assert len(summary.tasks) == 9
    assert [device for _, device in summary.targets].count("gpu") == 3
