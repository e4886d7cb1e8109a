"""Windows whose borders are cut off, against counting tap by tap."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tvm import tirx

from tvm_ext.schedules.window import Axis, covers, unflatten

WINDOWS = [
    Axis(size, out, kernel, stride, dilation, before)
    for size, out, kernel, stride, dilation, before in product(
        (1, 4, 7), (1, 3, 6), (1, 2, 3), (1, 2), (1, 2), (0, 1, 3)
    )
]


def number(expr) -> int:
    """The value of an expression of constants, which TVM folds as it is built."""
    return int(expr.value) if isinstance(expr, tirx.IntImm) else int(expr)


def test_taps_are_those_inside_the_input():
    for axis in WINDOWS:
        for position in range(axis.out):
            sources = [axis.source(position, tap) for tap in range(axis.kernel)]
            inside = [tap for tap, x in enumerate(sources) if 0 <= x < axis.size]
            low, count = (number(x) for x in axis.taps(tirx.const(position, "int32")))
            # Where no tap is inside, the count must not be positive: then no loop runs.
            assert max(count, 0) == len(inside), (axis, position)
            if inside:
                assert low == inside[0], (axis, position)


def test_sources_step_by_the_dilation_from_the_padded_origin():
    axis = Axis(9, 5, 3, 2, 3, 1)
    assert [axis.source(2, tap) for tap in range(3)] == [3, 6, 9]


def test_cut_says_whether_any_window_hangs_over():
    for axis in WINDOWS:
        taps = [axis.source(p, t) for p in range(axis.out) for t in range(axis.kernel)]
        over_the_end = max(taps) >= axis.size
        assert axis.reach == max(taps)
        assert axis.cut == (axis.before > 0 or over_the_end)


@pytest.mark.parametrize("extents", [(), (5,), (3, 4), (2, 3, 5)])
def test_unflatten_is_numpys(extents):
    for row in range(int(np.prod(extents)) if extents else 1):
        want = [int(i) for i in np.unravel_index(row, extents)] if extents else []
        assert unflatten(row, extents) == want


def test_a_window_covers_what_it_reads_alone() -> None:
    def one(kernel: int, before: int, after: int, dilation: int = 1, counted: bool = False) -> bool:
        return covers((6,), (kernel,), (before,), (after,), (dilation,), counted)

    assert one(6, 0, 0) and one(6, 0, 0, counted=True)
    assert one(7, 0, 1) and one(8, 1, 1)
    assert not one(7, 0, 1, counted=True)
    # Short of the end, behind the padding, and with gaps.
    assert not one(5, 0, 0) and not one(6, 1, 0) and not one(7, 0, 0) and not one(6, 0, 5, 2)
