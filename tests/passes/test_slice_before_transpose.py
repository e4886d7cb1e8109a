"""Slices move before transpositions: what is left, and that values stay."""

import numpy as np
import pytest
from relax_models import array, module, ops, run
from tvm import relax

from tvm_ext.passes import SliceBeforeTranspose

SHAPE = (4, 5, 6)


def _check(body):
    mod = module({"x": SHAPE}, body)
    new = SliceBeforeTranspose()(mod)
    x = array(0, *SHAPE)
    np.testing.assert_array_equal(run(new, x), run(mod, x))
    return ops(new)


def _cut(emit, x, *bounds):
    return emit(relax.op.strided_slice(x, *bounds))


def test_each_part_is_transposed_alone():
    def body(emit, x):
        y = emit(relax.op.permute_dims(x, (2, 0, 1)))
        first = _cut(emit, y, [0], [0], [3])
        return relax.op.add(first, _cut(emit, y, [0], [3], [6]))

    assert _check(body) == ["strided_slice", "permute_dims"] * 2 + ["add"]


@pytest.mark.parametrize(
    "bounds",
    [
        ([0, 2], [1, 0], [5, 3]),
        ([1], [0], [4], [2]),
        ([2], [4], [-(1 << 31)], [-1]),
        ([2], [3], [0], [-2]),
        ([0], [0], [6]),
    ],
)
def test_any_bounds(bounds):
    def body(emit, x):
        return _cut(emit, emit(relax.op.permute_dims(x, (2, 0, 1))), *bounds)

    assert _check(body) == ["strided_slice", "permute_dims"]


def test_parts_of_the_last_axis_are_cut_from_one_transposition():
    def body(emit, x):
        y = emit(relax.op.permute_dims(x, (2, 0, 1)))
        first = _cut(emit, y, [2], [0], [2])
        return relax.op.add(first, _cut(emit, y, [2], [3], [5]))

    assert _check(body) == ["permute_dims", "strided_slice", "strided_slice", "add"]


def test_a_transposition_with_another_reader_stays():
    def body(emit, x):
        y = emit(relax.op.permute_dims(x, (2, 0, 1)))
        return relax.op.add(y, _cut(emit, y, [0], [0], [1]))

    assert _check(body) == ["permute_dims", "strided_slice", "add"]


def test_a_result_of_the_model_stays():
    def body(emit, x):
        return relax.op.permute_dims(x, (2, 0, 1))

    assert _check(body) == ["permute_dims"]
