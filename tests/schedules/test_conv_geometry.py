"""Normalised dimensions of convolutions, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import TOLERANCE
from tests.schedules.kernels import Case
from tests.schedules.oracles import conv_workload
from tests.schedules.pooled_convolutions import with_pool
from tests.schedules.snippets import V
from tvm_ext.schedules.conv_columns import ColumnGeometry
from tvm_ext.schedules.conv_geometry import ConvGeometry, channel_step, lifting, pointwise
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.workload import Shape


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


def test_a_pool_stage_tells_rows_from_columns() -> None:
    w = with_pool(conv_workload(8, (5, 7), 8, 1), "max", 2, 2)
    g = ConvGeometry.of(w)
    assert not g.flat and not g.must_stage
    assert g.out == ColumnGeometry.of(w, lanes=8).out == (5, 7)


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


def test_more_dimensions_stay() -> None:
    assert lifting((4,)) == ((1,), (0,))
    assert lifting((4, 5, 6)) == ((), ())


@pytest.mark.parametrize(
    ("shape", "flat"),
    [((1, 8, 1, 1), True), ((1, 8, 5, 7), True), ((1, 8, 5, 1), False), ((1, 1, 1, 7), False)],
    ids=str,
)
def test_operands_of_rows_or_columns_keep_the_dimensions(shape: Shape, flat: bool) -> None:
    steps = (Step("add", (("value", 0), ("operand", 0))),)
    epilogue = Epilogue(steps, (Operand(shape, "float32"),))
    w = replace(conv_workload(8, (5, 7), 8, 1), epilogue=epilogue)
    assert pointwise(w) == flat
    assert ConvGeometry.of(w).flat == flat
    assert ColumnGeometry.of(w, lanes=8).out == ((1, 35) if flat else (5, 7))


@pytest.mark.parametrize("shape", [(1, V, 5, 1), (1, V, 1, 7), (1, 1, 5, 1)], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
def test_operands_of_rows_or_columns_are_broadcast(shape: Shape, stride: int) -> None:
    """To every pixel of a 1x1 convolution, by all algorithms."""
    w = conv_workload(6, (5 * stride, 7 * stride), V, 1, stride)
    steps = (Step("add", (("value", 0), ("operand", 0))),)
    w = replace(w, epilogue=Epilogue(steps, (Operand(shape, "float32"),)))
    data, weight = oracles.random(w.in_shape, 1), oracles.random((V, 6, 1, 1), 2)
    operand = oracles.random(shape, 3)
    want = oracles.conv(w, data, weight) + operand
    cases = {}
    for name, block in (("spatial_pack", V), ("conv_gemm", V), ("conv_direct", 0), ("gspc", 0)):
        cases[name] = Case(name, w, [data], [weight], [operand], (0, block)), want
    oracles.agree(cases, TOLERANCE)


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
