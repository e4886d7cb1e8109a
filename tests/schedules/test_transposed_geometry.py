"""Phases of transposed convolutions against the definition, output by output."""

from __future__ import annotations

from itertools import product

import pytest

from tests.schedules.test_conv_transpose import CASES
from tvm_ext.schedules.conv_workload import ConvTransposeWorkload
from tvm_ext.schedules.transposed_geometry import TransposedGeometry


@pytest.mark.parametrize("w", CASES.values(), ids=CASES.keys())
def test_phases_have_every_output_and_all_its_taps(w: ConvTransposeWorkload) -> None:
    """Input i adds to output i * stride - before + tap * dilation, in every dimension."""
    g = TransposedGeometry.of(w)
    for dim, (extent, out) in enumerate(zip(g.spatial, g.out, strict=True)):
        seen = {}
        for phase in g.phases():
            first, count, taps = phase.first[dim], phase.extents[dim], phase.taps[dim]
            for j in range(count):
                reads = {
                    (taps.first + t * taps.step, j + taps.offset + t * taps.stride)
                    for t in range(taps.count)
                }
                assert all(-g.low[dim] <= i - j <= g.reach[dim] for _, i in reads)
                seen[first + g.stride[dim] * j] = {r for r in reads if 0 <= r[1] < extent}
        wanted: dict[int, set[tuple[int, int]]] = {o: set() for o in range(out)}
        for tap, i in product(range(g.kernel[dim]), range(extent)):
            o = i * g.stride[dim] - g.before[dim] + tap * g.dilation[dim]
            if o in wanted:
                wanted[o].add((tap, i))
        assert seen == wanted
        assert g.most[dim] == max(phase.extents[dim] for phase in g.phases())


def test_outputs_that_no_tap_reaches_are_an_empty_phase() -> None:
    g = TransposedGeometry.of(CASES["outputs that no tap reaches"])
    assert {phase.first for phase in g.phases() if phase.empty} == {
        at for at in product(range(3), repeat=2) if 2 in at
    }
    assert all(not phase.empty for phase in TransposedGeometry.of(CASES["stride 1"]).phases())
