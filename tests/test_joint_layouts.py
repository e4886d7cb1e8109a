"""Choices for a whole model: what a reader needs counts where a value is made."""

from __future__ import annotations

import pytest
from passes.relax_models import array, const, module
from tvm import relax

from tvm_ext import planner
from tvm_ext.joint_layouts import joint_choices
from tvm_ext.layer_ways import Way, Ways
from tvm_ext.layers import layers
from tvm_ext.layout_conversions import copy_seconds
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.target import resolve

NEON = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


def _layers(body, **inputs):
    return layers(graph_pipeline()(module(inputs, body)))


def _two(emit, x):
    y = emit(relax.op.nn.conv2d(x, const(array(0, 16, 16, 3, 3)), padding=1))
    y = emit(relax.op.nn.relu(y))
    z = emit(relax.op.nn.conv2d(y, const(array(1, 16, 16, 3, 3)), padding=1))
    return emit(relax.op.nn.softmax(z))


@pytest.mark.parametrize(
    "slower,conversions,expected",
    (
        (1.01, 0.005, "planes"),  # as fast, by what estimates are worth
        (1.04, 0.2, "blocks"),  # slower by less than estimates are off
        (1.04, 0.3, "planes"),  # the conversion takes more than that
        (1.3, 0.3, "blocks"),
    ),
)
def test_estimates_are_trusted_as_far_as_they_go(slower, conversions, expected):
    """The second layer reads planes only; the first is faster in blocks.

    Its seconds are such that a conversion takes the share `conversions` of them.
    """
    found = _layers(_two, x=(1, 16, 12, 12))
    first, second, *rest = found
    seconds = copy_seconds((1, 16, 12, 12), NEON) / conversions
    ways = [
        Ways([Way(seconds, "blocks", {}, (0, 4)), Way(slower * seconds, "planes", {}, (0, 0))], {}),
        Ways([Way(seconds, "planes", {}, (0, 0))], {}),
        *(Ways([], {}) for _ in rest),
    ]
    chosen = joint_choices(found, ways, NEON)
    assert chosen[first.name][0] == expected
    assert chosen[second.name] == ("planes", (0, 0))


def test_a_pool_turns_planes_into_the_blocks_that_its_reader_takes():
    """The average over channels has no kernel for blocks, the fast convolutions none for planes."""

    def body(emit, x):
        sums = emit(relax.op.reshape(x, (1, 1, 32, 28, 28)))
        sums = emit(relax.op.nn.avg_pool3d(sums, (5, 1, 1), padding=(2, 0, 0)))
        sums = emit(relax.op.reshape(sums, (1, 32, 28, 28)))
        y = emit(relax.op.nn.max_pool2d(sums, (3, 3), strides=(2, 2)))
        a = emit(relax.op.nn.conv2d(y, const(array(0, 32, 32, 3, 3)), padding=1))
        b = emit(relax.op.nn.conv2d(y, const(array(1, 32, 32, 3, 3)), padding=1))
        return emit(relax.op.nn.relu(emit(relax.op.add(a, b))))

    plan = planner.choose(_layers(body, x=(1, 32, 28, 28)), NEON)
    (pool,) = (entry for entry in plan if entry.ops[0] == "nn.max_pool2d")
    assert pool.layout == ["NCHW", "NCHW4c"]


def test_a_depthwise_convolution_between_grouped_ones_stays_in_planes():
    """Groups of 3 channels have no kernel for blocks."""

    def body(emit, x):
        y = emit(relax.op.nn.conv2d(x, const(array(0, 48, 3, 1, 1)), groups=16))
        y = emit(relax.op.nn.conv2d(y, const(array(1, 48, 1, 3, 3)), padding=1, groups=48))
        return emit(relax.op.nn.conv2d(y, const(array(2, 48, 3, 1, 1)), groups=16))

    plan = planner.choose(_layers(body, x=(1, 48, 7, 7)), NEON)
    assert [entry.layout for entry in plan] == [["NCHW", "NCHW"]] * 3
    assert plan.layers[1].algorithm == "depthwise_planes"


def test_a_chain_turns_blocks_into_the_planes_that_a_concatenation_takes():
    """Parts of 6 channels don't fill blocks; the scales are planes in any case."""

    def body(emit, x, scale):
        parts = []
        for seed in range(2):
            y = emit(relax.op.nn.conv2d(x, const(array(seed, 6, 64, 3, 3)), padding=1))
            y = emit(relax.op.nn.relu(y))
            pooled = emit(relax.op.nn.max_pool2d(y, (2, 2), strides=(2, 2)))
            parts.append((y, pooled))
        tall = [emit(relax.op.multiply(y, scale)) for y, _ in parts]
        small = emit(relax.op.add(*(pooled for _, pooled in parts)))
        return relax.Tuple([emit(relax.op.concat(tall, 1)), small])

    found = _layers(body, x=(1, 64, 56, 56), scale=(1, 6, 1, 1))
    plan = planner.choose(found, NEON)
    products = [entry for entry in plan if entry.ops[0] == "multiply"]
    convolutions = [entry for entry in plan if entry.ops[0] == "nn.conv2d"]
    assert [entry.layout[1] for entry in convolutions] == ["NCHW4c"] * 2
    assert [entry.layout for entry in products] == [["NCHW4c", "NCHW"]] * 2
