"""Offsets of sparse columns: each finds the element that the convolution's definition names."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.conv_geometry import lifted
from tvm_ext.schedules.sparse_geometry import SparseGeometry

WORKLOADS = {
    "3x3": conv_workload(3, (6, 7), 4, 3, 1, 1),
    "strided": conv_workload(2, (9, 8), 4, 3, 2, 1),
    "unequal": conv_workload(2, (9, 8), 4, (2, 5), (3, 2), (0, 2)),
    "dilated": conv_workload(2, (9, 9), 4, 3, 1, 2, dilation=2),
    "strided and dilated": conv_workload(2, (11, 11), 4, 3, 2, 2, dilation=3),
    "1x1, strided": conv_workload(2, (6, 6), 4, 1, 2),
    "line": conv_workload(2, (17,), 4, 5, 2, 2),
    "volume": conv_workload(2, (4, 5, 6), 4, 3, (1, 2, 1), 1),
}


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("name", WORKLOADS)
def test_offsets_reach_what_the_taps_read(name: str, shifted: bool) -> None:
    """The copy is filled with numbers that say where in the padded input each element is from."""
    w = lifted(WORKLOADS[name])
    g = SparseGeometry.of(w, 2, shifted=shifted)
    copy = np.full(g.size, -1)
    padded = [n + b + a + 99 for n, b, a in zip(w.spatial, w.pad_before, w.pad_after, strict=True)]
    first = (*(o - 1 for o in w.conv_spatial[:-2]), 1)  # the second row of the last slice

    def number(channel: int, where: tuple[int, ...]) -> int:
        return int(np.ravel_multi_index((channel, *where), (w.in_channels, *padded)))

    for c in range(w.in_channels):
        for phase in product(*map(range, g.phases)):
            for at in product(*map(range, g.copied)):
                where = tuple(
                    (o + x) * s + p
                    for o, x, s, p in zip((*first, 0), at, w.strides, phase, strict=True)
                )
                copy[c * g.plane + g.place(phase, at)] = number(c, where)
    offsets = g.offsets()
    for c, (t, tap) in product(range(w.in_channels), enumerate(np.ndindex(*w.kernel))):
        for y, x in product(range(2), range(w.conv_spatial[-1])):
            out = (*first[:-1], first[-1] + y, x)
            where = tuple(
                o * s + k * d for o, s, k, d in zip(out, w.strides, tap, w.dilation, strict=True)
            )
            assert copy[offsets[c, t] + y * g.pitch + x] == number(c, where)


def test_positions_of_pointwise_convolutions_are_one_row() -> None:
    g = SparseGeometry.of(conv_workload(5, (6, 7), 4, 1), 16)
    assert (g.flat, g.out, g.extent, g.positions) == (True, (1, 42), 42, 16)
    # A line of 16 for the 16 positions.
    assert g.offsets().tolist() == [[0], [16], [32], [48], [64]]


def test_planes_are_an_odd_number_of_lines() -> None:
    g = SparseGeometry.of(conv_workload(5, (8, 8), 4, 1), 64)
    assert g.plane == 5 * 16


def test_phases_that_no_tap_reads_are_not_copied() -> None:
    g = SparseGeometry.of(WORKLOADS["1x1, strided"], 3)
    assert g.phases == (1, 1)
    assert g.copied == (3, 3)


def test_shifted_rows_are_aligned_where_that_adds_little() -> None:
    """56 positions in 64, 14 in 16, 8 in half a line; 20 stay, as neither 24 nor 32 is near."""
    pitches = {}
    for width in (8, 14, 20, 56):
        w = conv_workload(2, (5, width), 4, 3, 1, 1)
        g = SparseGeometry.of(w, 2, shifted=True)
        assert g.phases == (1, 3)
        pitches[width] = g.pitch
        assert SparseGeometry.of(w, 2).pitch == width + 2
    assert pitches == {8: 8, 14: 16, 20: 20, 56: 64}


def test_lines_that_vectors_lie_in() -> None:
    def lines(width: int, lanes: int, shifted: bool) -> float:
        w = conv_workload(2, (5, width), 4, 3, 1, 1)
        return SparseGeometry.of(w, 2, shifted=shifted).lines(lanes)

    assert lines(16, 16, True) == lines(8, 8, True) == 1
    assert lines(8, 16, True) == 1.5
    assert lines(16, 16, False) == 1 + 15 / 16
    assert lines(16, 8, False) == 1 + 7 / 16
    assert SparseGeometry.of(conv_workload(5, (8, 8), 4, 1), 64).lines(16) == 1
