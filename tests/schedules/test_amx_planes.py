"""Where taps find their input in the planes, against a padded NumPy array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.amx_planes import Planes
from tvm_ext.schedules.conv_workload import ConvWorkload

CASES = {
    "1x1": conv_workload(1, (5, 7), 1, 1),
    "3x3": conv_workload(1, (5, 7), 1, 3, 1, 1),
    "7x7 stride 2": conv_workload(1, (11, 12), 1, 7, 2, 3),
    "1x1 stride 2": conv_workload(1, (6, 9), 1, 1, 2),
    "3x3 stride (1, 3)": conv_workload(1, (6, 11), 1, 3, (1, 3), (1, 2)),
    "dilation": conv_workload(1, (9, 9), 1, 3, 1, 2, dilation=2),
    "dilation, stride": conv_workload(1, (13, 14), 1, 3, 2, 2, dilation=3),
    "uneven padding": replace(conv_workload(1, (6, 6), 1, 3), pad_after=(2, 3)),
}


@pytest.mark.parametrize("w", CASES.values(), ids=CASES)
def test_taps_read_the_padded_input(w: ConvWorkload) -> None:
    height, width = w.conv_spatial
    planes = Planes.of(w, height)
    x = np.random.default_rng(0).standard_normal(w.spatial)
    # Room for whatever a plane holds beyond what windows reach.
    padded = np.pad(x, [(b, 99) for b in w.pad_before])
    memory = np.zeros(planes.all_positions)
    for p in range(planes.phases[0]):
        for q in range(planes.phases[1]):
            first, stop = planes.columns(q)
            for i in range(planes.height):
                base = (p * planes.phases[1] + q) * planes.size + i * planes.pitch
                for j in range(first, stop):
                    memory[base + j] = padded[i * w.strides[0] + p, j * w.strides[1] + q]
    for ky in range(w.kernel[0]):
        for kx in range(w.kernel[1]):
            rows = ky * w.dilation[0] + w.strides[0] * np.arange(height)
            columns = kx * w.dilation[1] + w.strides[1] * np.arange(width)
            places = np.arange(height)[:, None] * planes.pitch + np.arange(width)
            found = memory[int(planes.tap(ky, kx)) + places]
            np.testing.assert_array_equal(found, padded[np.ix_(rows, columns)])


def test_rows_share_their_padding() -> None:
    assert Planes.of(CASES["3x3"], 5).pitch == 8
    assert Planes.of(CASES["7x7 stride 2"], 6).shared == 0


def test_an_odd_number_of_positions_spreads_over_the_cache() -> None:
    assert all(Planes.of(w, 3).size % 2 for w in CASES.values())
