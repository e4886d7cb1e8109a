"""Normalised dimensions of convolutions, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.conv_geometry import ConvGeometry, channel_step


def test_pointwise_positions_become_one_row() -> None:
    g = ConvGeometry.of(conv_workload(8, (5, 7), 8, 1))
    assert g.flat and not g.must_stage
    assert (g.spatial, g.out, g.staged) == ((1, 35), (1, 35), (1, 35))
    assert (g.kernel, g.stride, g.before) == ((1, 1), (1, 1), (0, 0))


@pytest.mark.parametrize("spatial", [(9,), (9, 9), (3, 9, 9)])
def test_strided_pointwise_picks_positions_while_staging(spatial: tuple[int, ...]) -> None:
    w = conv_workload(8, spatial, 8, 1, 2)
    g = ConvGeometry.of(w)
    assert g.flat and g.must_stage
    # The copy holds what the strides leave; seen flat, the loops have stride one.
    lift = (1,) * max(0, 2 - len(spatial))
    assert g.staged == lift + w.out_spatial
    assert g.subsample == lift + w.strides
    assert g.out == (1, prod(w.out_spatial))
    assert g.stride == (1, 1)


def test_padded_pointwise_has_borders() -> None:
    g = ConvGeometry.of(conv_workload(8, (5, 7), 8, 1, 1, 1))
    assert not g.flat and g.must_stage
    assert (g.out, g.before) == ((7, 9), (1, 1))


def test_one_dimension_gets_a_second() -> None:
    g = ConvGeometry.of(conv_workload(8, (20,), 8, 3, 2, 1, dilation=2))
    assert (g.spatial, g.kernel, g.stride, g.dilation) == ((1, 20), (1, 3), (1, 2), (1, 2))
    assert (g.before, g.out) == ((0, 1), (1, 9))
    # Nine windows two apart, each five long.
    assert g.staged == (1, 8 * 2 + 5)


def test_staging_reaches_as_far_as_the_last_window() -> None:
    """An input longer than the windows isn't copied to its end, padding only as far as read."""
    w = replace(conv_workload(8, (8, 9), 8, 3, 2), pad_after=(1, 0))
    g = ConvGeometry.of(w)
    assert (g.out, g.staged, g.must_stage) == ((4, 4), (9, 9), True)
    valid = ConvGeometry.of(conv_workload(8, (8, 10), 8, 3, 2))
    assert (valid.out, valid.staged, valid.must_stage) == ((3, 4), (7, 9), False)


@pytest.mark.parametrize(
    ("channels", "block", "step"),
    [(16, 8, 8), (12, 8, 4), (3, 8, 1), (20, 0, 10), (16, 0, 16), (34, 0, 2), (13, 0, 13)],
)
def test_unrolled_channels_divide_the_group_and_stay_in_a_block(
    channels: int, block: int, step: int
) -> None:
    assert channel_step(channels, block) == step
