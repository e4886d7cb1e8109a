"""The table of networks from ONNX and from Relay, from times and plans made up."""

from dataclasses import replace

import tvm_ext
from benchmarks.bench_relay import HEADER, ONNX, RELAY, Row, differing_layers, section
from benchmarks.harness import Result


def row(factor=1.0, error=1e-6, differing=()):
    seconds = (0.002, 0.004, 0.003)
    times = {ONNX: seconds, RELAY: tuple(factor * s for s in seconds)}
    return Row("net", Result(times), error, differing)


def test_a_row_within_the_bar():
    cells = dict(zip(HEADER, row(1.04).cells(), strict=True))
    assert cells["ONNX, ms"] == "3.00 (2.20-3.80)"
    assert cells["Relay / ONNX"] == "1.040"
    assert cells["difference"] == "1.0e-06"
    assert cells["other algorithms"] == "none"
    assert row(1.04).good


def test_a_row_beyond_a_bar():
    assert not row(1.06).good
    assert not row(error=2e-4).good
    cells = row(1.06, differing=("conv2d_0: gemm dense against direct dense",)).cells()
    assert cells[3] == "1.060 MISSED"
    assert cells[5] == "conv2d_0: gemm dense against direct dense"


def test_the_section_has_the_mean():
    text = section([row(1.0), row(1.21)], 2)
    assert text.startswith("### 2 threads")
    assert "Geometric mean of the ratio: 1.100 (bar: 1.05 for each)." in text


def test_plans_are_compared_layer_by_layer(tmp_path):
    from tests.benchmarks.test_relay_writer import network

    plan = tvm_ext.plan(tvm_ext.load_model(network()))
    assert differing_layers(plan, plan) == ()
    first, *rest = plan.layers
    renamed = replace(plan, layers=(replace(first, name="other"), *rest))
    assert differing_layers(plan, renamed) == ()
    changed = replace(plan, layers=(replace(first, algorithm="magic"), *rest))
    (reason,) = differing_layers(plan, changed)
    assert reason == f"{first.name}: {first.algorithm} dense against magic dense"
    assert differing_layers(plan, replace(plan, layers=tuple(rest))) == (
        f"{len(rest) + 1} against {len(rest)} layers",
    )
