"""Which layouts values are in while a plan grows."""

from __future__ import annotations

from tvm import relax

from tvm_ext.layout_conversions import Values, conversion_seconds, copy_seconds
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
