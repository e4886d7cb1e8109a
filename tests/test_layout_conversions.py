"""Which layouts values are in while a plan grows."""

from __future__ import annotations

import pytest
from tvm import relax
from tvm.relax import op

from tests.passes.relax_models import array, const, module
from tvm_ext import planner
from tvm_ext.layers import layers
from tvm_ext.layout_conversions import (
    Values,
    conversion_seconds,
    conversions_between,
    copy_seconds,
)
from tvm_ext.passes import UniversalFusion
from tvm_ext.target import resolve

NEON = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


def _var(name, *shape):
    return relax.Var(name, relax.TensorType(list(shape), "float32"))


def test_inputs_are_in_the_order_of_the_model():
    x, values = _var("x", 1, 16, 4, 4), Values()
    assert values.at_hand(x, 0) and not values.at_hand(x, 4)
    values.add(x, 4)
    assert values.at_hand(x, 0) and values.at_hand(x, 4)


def test_inputs_of_a_part_are_in_any_layout_and_stay_so():
    x, y, values = _var("x", 1, 16, 4, 4), _var("y", 1, 16, 4, 4), Values(inputs_in_any=True)
    values.add(x, 4)
    assert values.at_hand(x, 0) and values.at_hand(x, 4) and values.at_hand(x, 8)
    values.blocks[y] = {4}
    assert values.at_hand(y, 4) and not values.at_hand(y, 0)


def test_a_view_follows_the_value_behind_it():
    x, view, values = _var("x", 1, 16, 4, 4), _var("view", 1, 256), Values()
    values.blocks[x] = {4}
    values.share(view, x)
    assert not values.at_hand(view, 0)
    values.add(x, 0)
    assert values.at_hand(view, 0)


def test_single_positions_of_one_sample_cost_nothing():
    one, two, values = _var("one", 1, 6, 1, 1), _var("two", 2, 6, 1, 1), Values()
    values.blocks[one], values.blocks[two] = {4}, {4}
    assert conversion_seconds([(one, 0)], NEON, values) == 0
    assert conversion_seconds([(two, 0)], NEON, values) == copy_seconds((2, 6, 1, 1), NEON)


def _turned(emit, x):
    return op.permute_dims(x, (0, 1, 3, 2))


def _parts(emit, x):
    """Parts of the channels, which are read in blocks where they are."""
    return op.permute_dims(emit(op.reshape(x, (1, 4, 16, 20, 20))), (0, 1, 3, 4, 2))


@pytest.mark.parametrize(("behind", "count"), [(_turned, 1), (_parts, 0)])
def test_a_part_pays_for_conversions_between_its_layers(behind, count):
    def body(emit, x):
        w = const(array(0, 64, 64, 3, 3))
        return behind(emit, emit(op.nn.conv2d(x, w, padding=1)))

    mod = UniversalFusion(lambda one, parts: False)(module({"x": (1, 64, 20, 20)}, body))
    found = layers(mod)
    plan = planner.choose(found, NEON, is_part=True)
    assert plan["conv2d_0"].layout == ["NCHW4c", "NCHW4c"]
    seconds = conversions_between(found, plan, NEON)
    assert seconds == count * copy_seconds((1, 64, 20, 20), NEON)
