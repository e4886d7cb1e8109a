"""Operators and values of SplitToSlices."""

import numpy as np
import pytest
from relax_models import array, module, ops, run
from tvm import relax

from tvm_ext.passes import SplitToSlices


def _items(emit, x, sections, axis, wanted):
    parts = emit(relax.op.split(x, sections, axis))
    return [emit(relax.TupleGetItem(parts, i)) for i in wanted]


@pytest.mark.parametrize(
    ("sections", "axis", "bounds"),
    [(3, 1, [(0, 3), (3, 6), (6, 8)]), ([2, 3], -2, [(0, 2), (2, 3), (3, 8)])],
)
def test_items_become_slices(sections, axis, bounds):
    def body(emit, x):
        first, last = _items(emit, x, sections, axis, [1, 2])
        return relax.op.concat([last, first], axis)

    mod = module({"x": (2, 8, 3)}, body)
    new = SplitToSlices()(mod)
    assert ops(new) == ["strided_slice", "strided_slice", "concat"]
    x = array(0, 2, 8, 3)
    want = np.concatenate([x[:, slice(*bounds[2])], x[:, slice(*bounds[1])]], 1)
    np.testing.assert_array_equal(run(new, x), want)


def test_a_split_that_is_returned_stays():
    def body(emit, x):
        return emit(relax.op.split(x, 2, 0))

    mod = module({"x": (4, 3)}, body)
    assert ops(SplitToSlices()(mod)) == ["split"]
