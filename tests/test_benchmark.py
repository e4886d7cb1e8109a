"""The latency of a whole model."""

from __future__ import annotations

import pytest

import tvm_ext


def test_benchmark(convnet: tvm_ext.Executable) -> None:
    timing = convnet.benchmark(runs=5, min_seconds=0)
    assert timing.runs == 5
    assert 0 < timing.p10_ms <= timing.median_ms <= timing.p90_ms
    # Worked by hand: 2 * 144 positions * (16*27 + 16*16 + 32*144) multiply-adds, and the head.
    convolutions = 2 * 144 * (16 * 27 + 16 * 16 + 32 * 144)
    assert convolutions < convnet.flops < 1.1 * convolutions
    assert timing.gflops == pytest.approx(convnet.flops / timing.median_ms / 1e6)
