"""The fusion benchmark's tables, and one run on a tiny model."""

import numpy as np
import onnx
import pytest

from benchmarks import bench_fusion, fusion_row, harness, zoo
from benchmarks.fusion_row import FUSE_OPS, OURS, Counts, Row
from tests import models
from tvm_ext.viz.fused_layers import FusedLayers

TIMES = harness.Result({FUSE_OPS: (2e-3, 4e-3), OURS: (1e-3, 2e-3)})
MACHINE = {"cpu": "A Fine CPU", "isa": ["avx2"]}
COUNTS = Counts(
    10, 8, (FusedLayers(8, 8_000_000), FusedLayers(4, 4_000_000), FusedLayers(2, 1_600_000))
)


def test_ratios_are_ours_to_theirs():
    assert COUNTS.ratios() == [0.25, 0.5, 0.2, 0.4]
    assert Row("m", COUNTS, {1: TIMES}, (9, 7), 1e-6).cells(1) == [
        "m", "3.00", "1.50", "0.500", "9", "7", "1.0e-06"
    ]  # fmt: skip


def test_failures_and_other_outputs_stay_out_of_the_mean_and_are_shown():
    rows = [
        Row("right", COUNTS, {1: TIMES}, (9, 7), 1e-6),
        Row("wrong", COUNTS, {1: TIMES}, (9, 7), 0.5),
        Row("broken", failure="ValueError: no"),
    ]
    text = bench_fusion.section(rows, [1], MACHINE)
    assert "A Fine CPU" in text
    assert "| right | 10 | 8 | 8 | 4 | 2 | 0.25 | 0.50 | 8.0 | 4.0 | 1.6 | 0.20 | 0.40 |" in text
    assert "| geometric mean |  |  |  |  |  | 0.25 | 0.50 |  |  |  | 0.20 | 0.40 |" in text
    assert "5.0e-01 WRONG" in text
    assert "failed: ValueError: no" in text
    assert "0.500 over 1 of 3 models" in text
    assert "none over 0 of 1 models" in bench_fusion.times_table(rows[2:], 1)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    path = tmp_path / "convnet.onnx"
    onnx.save(models.convnet(), path)
    x = np.random.default_rng(0).normal(size=(1, 3, 12, 12)).astype("float32")
    monkeypatch.setattr(zoo, "path", lambda name: path)
    monkeypatch.setattr(zoo, "sample_inputs", lambda name: {"x": x})
    monkeypatch.setattr(fusion_row, "set_tvm_threads", lambda threads: None)


OPTIONS = {"rounds": 1, "warmup": 0, "min_time_s": 0.0, "settle_s": 0.0}


def test_one_model_end_to_end(tiny):
    stages = []
    row = fusion_row.bench_model("convnet", [1], OPTIONS, stages.append)
    assert row.failure == ""
    assert row.good
    assert stages == ["fuse", "build", "1 threads"]
    # Three convolutions, concatenation, pool, product; flatten is a view.
    assert row.counts.fused[0].kernels == 6
    # The stem's output, both branches, the concatenation, the pool: 12 x 12 each but the last.
    assert row.counts.fused[0].nbytes == 4 * (144 * (16 + 48 + 48) + 48)
    assert set(row.times) == {1}
    assert row.counts.fused[2].kernels == row.calls[1]


def test_counting_alone_compiles_nothing(tiny):
    stages = []
    row = fusion_row.bench_model("convnet", [], OPTIONS, stages.append)
    assert row.failure == ""
    assert row.good
    assert stages == ["fuse"]
    # Both branches lie in the concatenation; the product computes the pool's means itself.
    assert row.counts.fused[2] == FusedLayers(4, 4 * 144 * (16 + 48))
    assert "Latency" not in bench_fusion.section([row], [], MACHINE)


def test_a_model_that_does_not_fuse_says_why(tiny, monkeypatch):
    def refuse(name):
        raise NotImplementedError("no such operator\nand more")

    monkeypatch.setattr(zoo, "path", refuse)
    row = fusion_row.bench_model("convnet", [1], OPTIONS, lambda stage: None)
    assert row.failure == "NotImplementedError: no such operator"
    assert not row.good
