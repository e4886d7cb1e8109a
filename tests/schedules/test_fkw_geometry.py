"""Where taps read and add: the sums of all shifts are the convolution that NumPy makes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.fkw_geometry import FkwGeometry, Tap
from tvm_ext.schedules.fkw_reads import runs_of

WORKLOADS = {
    "3x3": conv_workload(1, (6, 7), 1, 3, 1, 1),
    "strided": conv_workload(1, (9, 8), 1, 3, 2, 1),
    "unequal": conv_workload(1, (9, 8), 1, (2, 5), (3, 2), (0, 2)),
    "dilated": conv_workload(1, (9, 9), 1, 3, 1, 2, dilation=2),
    "strided and dilated": conv_workload(1, (11, 11), 1, 3, 2, 2, dilation=3),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_sums_of_the_shifts_are_the_convolution(name: str) -> None:
    w = WORKLOADS[name]
    every = tuple(range(w.kernel[0] * w.kernel[1]))
    g = FkwGeometry.of(w, (every,), 8)
    data = oracles.random(w.in_shape, 1).astype("float64")
    weights = oracles.random((1, 1, *w.kernel), 2)
    actual = np.zeros(w.conv_spatial)
    far = 99  # as if the copy were so much larger on every side
    padded = np.pad(data[0, 0], far)
    for tap, weight in enumerate(weights.reshape(-1)):
        part, row, shift = g.taps[tap]
        for y, x in np.ndindex(*w.conv_spatial):
            column = x + g.shifts[shift]
            at_y = (y + row + g.first_row) * w.strides[0] + g.parts[part][0]
            at_x = column * w.strides[1] + g.parts[part][1]
            actual[y, x] += weight * padded[far + at_y, far + at_x]
    np.testing.assert_allclose(actual, oracles.conv(w, data, weights)[0, 0], rtol=1e-5, atol=1e-6)


def test_taps_of_a_column_share_a_shift() -> None:
    g = FkwGeometry.of(WORKLOADS["3x3"], ((0, 3, 4), (1, 8)), 8)
    assert g.shifts == (-1, 0, 1)
    assert g.parts == ((0, 0),)
    assert g.taps == {0: Tap(0, 0, 0), 1: Tap(0, 0, 1), 3: Tap(0, 1, 0), 4: Tap(0, 1, 1),
                      8: Tap(0, 2, 2)}  # fmt: skip


def test_each_row_is_read_once() -> None:
    """Taps 0 and 3 read the same rows but for the ends; tap 8 reads others."""
    g = FkwGeometry.of(WORKLOADS["3x3"], ((0, 3, 8),), 8)
    runs = runs_of(g, (0, 3, 8), 4)
    rows = [(run.part, run.first + i) for run in runs for i in range(run.rows)]
    assert len(rows) == len(set(rows)) == 6
    reads = {
        (run.first + i - reader.below, reader.number)
        for run in runs for i in range(run.rows) for reader in run.taps
    }  # fmt: skip
    assert reads == {(row, number) for row in range(4) for number in range(3)}


def test_planes_are_an_odd_number_of_lines() -> None:
    for chunk in range(1, 7):
        g = FkwGeometry.of(WORKLOADS["3x3"], ((0, 8),), 8, chunk=chunk)
        assert g.plane % 32 == 16
        assert g.plane >= g.rows * g.width


def test_folded_rows_have_zeros_between_them() -> None:
    g = FkwGeometry.of(conv_workload(1, (8, 7), 1, 3, 1, 1), ((0, 8),), 16)
    assert g.margins == (1, 1)
    assert g.may_fold(2)
    assert not g.may_fold(4)
    assert not FkwGeometry.of(conv_workload(1, (8, 8), 1, 3, 1, 1), ((0, 8),), 16).may_fold(2)


def test_strips_overlap_by_the_shifts() -> None:
    w = conv_workload(1, (6, 40), 1, 3, 1, 1)
    narrow, whole = (FkwGeometry.of(w, ((0, 8),), 16, strip=n) for n in (1, 3))
    assert (narrow.whole, narrow.strip_columns) == (False, 14)
    assert (whole.whole, whole.strip_columns) == (True, 40)
    assert whole.strips == (1, 2, 3)
