"""The table of replayed records, from measurements made up."""

from dataclasses import replace

from benchmarks import bench_replay
from benchmarks.bench_replay import HEADER, cells
from benchmarks.replay_row import Row

MACHINE = {"cpu": "A Fine CPU", "isa": ["avx2"]}
NAN = float("nan")
CONV = Row(
    "net", "conv", 2, 3, 3, (), 2e-3, 1e-3, "vector_loops", ("spatial_pack", 8e-4), 0.75
)  # fmt: skip
POOL = Row("net", "pool", 1, 3, 2, ("7: crashed",), 1e-3, 3e-3, "replayed", None, NAN)
NONE = Row("net", "lrn", 1, 1, 0, ("9: step 0, CI: no",), 1e-3, NAN, "", None, NAN)


def test_a_row():
    line = dict(zip(HEADER, cells(CONV), strict=True))
    assert line == {
        "task": "net conv", "threads": "2", "right": "3 of 3", "log's best, ms": "2.000",
        "best replay, ms": "1.000", "variant": "vector_loops", "to the log": "0.50",
        "our kernel, ms": "spatial_pack 0.800", "to our kernel": "1.25",
        "rank correlation": "0.75",
    }  # fmt: skip
    assert cells(NONE)[3:] == ["1.000", "", "", "", "", "", ""]


def test_the_summary():
    text = bench_replay.section([CONV, POOL, NONE], ["net by Ansor"], MACHINE)
    assert "The log's times are of another machine" in text
    assert "The records: net by Ansor. " in text
    assert "Replayed and right: 5 of 7 records (71.4%)." in text
    assert "Time by the log's best: median 1.75, least 0.50, most 3.00 (2 tasks)." in text
    assert "Time by our kernel's: median 1.25, least 1.25, most 1.25 (1 tasks)." in text
    assert "Rank correlation: median 0.75 (1 tasks)." in text
    assert "- pool, line 7: crashed\n- lrn, line 9: step 0, CI: no" in text


def test_without_a_correlation_or_failures():
    text = bench_replay.section([replace(CONV, rank=NAN)], ["net"], MACHINE)
    assert "No task has enough records for a rank correlation." in text
    assert "Not right" not in text
