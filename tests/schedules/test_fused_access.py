"""The fewest dimensions of an elementwise kernel, and where they read."""

from math import prod

import numpy as np

from tvm_ext.schedules.fused_access import Access, fuse_dimensions
from tvm_ext.schedules.strided_view import StridedView


def _broadcast(shape, own):
    return Access(StridedView.contiguous(own).broadcast(shape), (1,) * len(shape))


def _elements(access, data):
    at = np.ndindex(*access.view.shape)
    return np.array([data.ravel()[access.index(index)] for index in at])


def test_fused_dimensions():
    shape = (2, 16, 7, 7)
    whole = _broadcast((prod(shape),), (prod(shape),))
    assert fuse_dimensions(shape, [_broadcast(shape, shape)] * 2) == ((prod(shape),), [whole] * 2)
    extents, accesses = fuse_dimensions(
        shape, [_broadcast(shape, shape), _broadcast(shape, (1, 16, 1, 1))]
    )
    assert extents == (2, 16, 49)
    assert [access.view.strides for access in accesses] == [(784, 49, 1), (0, 1, 0)]
    assert fuse_dimensions((1, 1), [_broadcast((1, 1), (1, 1))])[0] == (1,)


def test_dimensions_that_repeat_elements_stay_apart():
    shape = (2, 3, 6, 4)
    data = np.arange(2 * 3 * 2 * 2)
    repeated = Access(StridedView(shape, (12, 4, 2, 1)), (1, 1, 3, 2))
    extents, (whole, access) = fuse_dimensions(shape, [_broadcast(shape, shape), repeated])
    assert extents == (6, 6, 4)
    want = data.reshape(2, 3, 2, 2).repeat(3, axis=2).repeat(2, axis=3).ravel()
    np.testing.assert_array_equal(_elements(access, data), want)
    np.testing.assert_array_equal(_elements(whole, np.arange(prod(shape))), np.arange(prod(shape)))


def test_lanes_of_a_vector_find_their_elements():
    """Vectors that start with an element, in the middle of one, and anywhere."""
    for factor, width, starts in ((2, 4, (0, 4, 6)), (8, 4, (0, 4, 12)), (3, 4, (0, 4, 7, 11))):
        access = Access(StridedView((2, 24), (24 // factor, 1)), (1, factor))
        want = np.arange(2 * 24 // factor).reshape(2, -1).repeat(factor, axis=1)
        for start in starts:
            got = [access.lane_index([1, start], lane, width) for lane in range(width)]
            assert got == list(want[1, start : start + width])
