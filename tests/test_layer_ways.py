"""The ways to compute a layer."""

from __future__ import annotations

from passes.relax_models import array, const, module
from tvm import relax

from tvm_ext.layer_ways import ways
from tvm_ext.layers import layers
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.schedules import algorithms
from tvm_ext.target import resolve

NEON = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


def test_every_algorithm_is_a_way_or_has_a_reason():
    def body(emit, x):
        y = emit(relax.op.nn.conv2d(x, const(array(0, 16, 16, 3, 3)), padding=1))
        return emit(relax.op.reshape(y, (1, 16 * 64)))

    conv, view = layers(graph_pipeline()(module({"x": (1, 16, 8, 8)}, body)))
    found = ways(conv, NEON)
    names = [way.algorithm for way in found.usable]
    assert {*names, *found.refused} == set(algorithms(conv.workload))
    assert not set(names) & set(found.refused)
    assert found.refused["depthwise"].startswith("16 -> 16 channels in 1 groups")
    pairs = [way.pair for way in found.usable if way.algorithm == "spatial_pack"]
    assert pairs == [(4, 4), (0, 4)]
    assert all(way.seconds > 0 and way.params for way in found.usable)
    assert ways(view, NEON).usable == []
