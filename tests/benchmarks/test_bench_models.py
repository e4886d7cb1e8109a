"""The model benchmark's tables, and one run with a stand-in for the compiler."""

import numpy as np
import pytest

from benchmarks import bench_models, harness
from benchmarks.bench_models import OPENVINO, ORT, OURS, Row
from benchmarks.engines import onnxruntime_engine

TIMES = harness.Result({OURS: (1e-3, 2e-3), ORT: (2e-3, 4e-3), OPENVINO: (4e-3, 8e-3)})
MACHINE = {
    "cpu": "A Fine CPU",
    "logical_cpus": 2,
    "isa": ["avx2"],
    "python": "3.12.0",
    "versions": {"numpy": "2.0"},
}


def test_ratio_is_to_the_faster_peer():
    assert Row("m", TIMES, 0.0).ratio == 0.5


def test_failures_and_wrong_outputs_stay_out_of_the_mean_and_are_shown():
    rows = [
        Row("right", TIMES, 1e-6, 1e-6, 1.0),
        Row("wrong", TIMES, 0.5, 1e-6, 1.0),
        Row("broken", failure="ValueError: no"),
    ]
    assert "0.500 over 1 of 3 models" in bench_models.summary(rows)
    text = bench_models.section(rows, 1, "native", MACHINE)
    assert "A Fine CPU" in text
    assert "5.0e-01 WRONG" in text
    assert "failed: ValueError: no" in text
    assert bench_models.summary(rows[1:]) == "None of 2 models ran with right outputs."


def test_words_after_an_option_belong_to_it():
    spread = bench_models._spread(
        ["--models", "a", "b", "--write", "--threads", "1", "2"], ("--models", "--threads")
    )
    assert spread == [
        "--models",
        "a",
        "--models",
        "b",
        "--write",
        "--threads",
        "1",
        "--threads",
        "2",
    ]


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Put ONNX Runtime in the compiler's place; its outputs are times `factor`."""
    tvm_ext = pytest.importorskip("tvm_ext")
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    monkeypatch.setenv("TVM_EXT_ZOO", str(tmp_path))
    monkeypatch.setattr(bench_models, "build_cost", lambda path, target: (1.5, 200.0))
    monkeypatch.setattr(bench_models, "set_tvm_threads", lambda threads: None)

    def install(factor):
        def build(path, target):
            def run(inputs):
                outputs = onnxruntime_engine(path, inputs, 1)()
                return np.multiply(outputs[0], np.float32(factor))

            return run

        monkeypatch.setattr(tvm_ext, "build", build, raising=False)

    return install


@pytest.mark.parametrize(("factor", "good"), [(1.0, True), (1.01, False)])
def test_one_model_end_to_end(stand_in, factor, good):
    stand_in(factor)
    options = {"rounds": 1, "warmup": 0, "min_time_s": 0.0, "settle_s": 0.0}
    row = bench_models.bench_model("squeezenet", [1], "native", options)[1]
    assert row.failure == ""
    assert row.good is good
    assert row.error == pytest.approx(factor - 1.0, abs=1e-5)
    assert row.peer_error < 1e-4
    assert row.build_s == 1.5


def test_a_model_that_does_not_build_says_why(stand_in, monkeypatch):
    stand_in(1.0)

    def refuse(path, target):
        raise NotImplementedError("no such operator\nand more")

    monkeypatch.setattr(bench_models, "build_cost", refuse)
    rows = bench_models.bench_model("squeezenet", [1, 2], "native", {})
    assert {row.failure for row in rows.values()} == {"NotImplementedError: no such operator"}
