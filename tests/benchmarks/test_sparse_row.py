"""A row's numbers by hand, and one pruned block built, checked and timed."""

import pytest

from benchmarks import harness, sparse_row
from benchmarks.deepsparse_engine import INTERPRETER
from benchmarks.sparse_row import DEEPSPARSE, DENSE, HEADER, ORT, OURS, Case, Row, bench_case

CASE = Case("resnet_block", "unstructured", 0.161)
OPTIONS = {"rounds": 1, "warmup": 0, "min_time_s": 0.0, "settle_s": 0.0}
SECONDS = {OURS: (1e-3, 2e-3), DENSE: (2e-3, 3e-3), ORT: (4e-3, 8e-3)}


def row(times=None, **changes):
    times = harness.Result(SECONDS if times is None else times)
    return Row(CASE, times, 0.2, 1e-6, weights=(2**20, 2**22), **changes)


def cells(made):
    return dict(zip(HEADER, made.cells(), strict=True))


def test_ratios_and_the_share_of_the_expected_speed_up_by_hand():
    made = row(deepsparse="not installed: there is no x")
    assert made.good
    assert made.expected_share == pytest.approx(0.2 * 4)
    shown = cells(made)
    assert shown["MACs left"] == "20.0%"
    assert (shown[f"over {DENSE}"], shown[f"over {ORT}"]) == ("1.75", "4.00")
    assert shown["share of expected"] == "0.80"
    assert shown["weights, MiB"] == "1.0 of 4.0"
    assert shown[f"{OURS}, ms"] == "1.50 (1.10-1.90)"
    assert shown[f"{DEEPSPARSE}, ms"] == "not installed: there is no x"
    assert shown[f"over {DEEPSPARSE}"] == shown[f"error of {DEEPSPARSE}"] == ""


def test_deepsparse_beside_the_others():
    made = row({**SECONDS, DEEPSPARSE: (3e-3, 5e-3)}, deepsparse="1.8.0", deepsparse_error=2e-6)
    shown = cells(made)
    assert shown[f"over {DEEPSPARSE}"] == "2.75"
    assert shown[f"error of {DEEPSPARSE}"] == "2.0e-06"


def test_wrong_outputs_and_failures_are_shown():
    wrong = Row(CASE, harness.Result(SECONDS), 0.2, 0.5)
    assert not wrong.good
    assert cells(wrong)[f"error of {OURS}"] == "5.0e-01 WRONG"
    assert not Row(CASE, harness.Result(SECONDS), 0.2, float("nan")).good
    broken = Row(CASE, failure="ValueError: no")
    assert not broken.good
    assert broken.cells()[:3] == ["resnet_block", "unstructured, 0.161", "failed: ValueError: no"]
    assert len(broken.cells()) == len(HEADER)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("TVM_EXT_ZOO", str(tmp_path))
    monkeypatch.setenv(INTERPRETER, str(tmp_path / "nowhere"))
    monkeypatch.setattr(sparse_row, "set_tvm_threads", lambda threads: None)


def test_one_block_end_to_end(cache):
    made = bench_case(CASE, [1], OPTIONS)[1]
    assert made.failure == ""
    assert made.good
    assert made.macs == pytest.approx(0.161, abs=1e-3)
    assert set(made.times.seconds) == {OURS, DENSE, ORT}
    assert made.deepsparse.startswith("not installed: there is no ")
    assert made.weights[0] <= made.weights[1]


def test_a_model_that_does_not_build_says_why(cache, monkeypatch):
    import tvm_ext

    def refuse(path):
        raise NotImplementedError("no such operator\nand more")

    monkeypatch.setattr(tvm_ext, "build", refuse)
    rows = bench_case(CASE, [1, 2], OPTIONS)
    assert {made.failure for made in rows.values()} == {"NotImplementedError: no such operator"}
