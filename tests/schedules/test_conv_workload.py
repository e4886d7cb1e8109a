"""Shapes, work and traffic of convolutions, counted position by position."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import CASES, GROUPED
from tests.schedules.oracles import conv_workload
from tests.schedules.pooled_convolutions import with_pool
from tests.schedules.prologues import with_prologue
from tvm_ext.schedules.conv_workload import ConvTransposeWorkload, ConvWorkload


@pytest.mark.parametrize("size,kernel,stride,dilation,before,after", [
    case for case in product((1, 5, 8), (1, 3), (1, 2, 3), (1, 2), (0, 2), (0, 1))
    if case[0] + case[4] + case[5] > case[3] * (case[1] - 1)
])  # fmt: skip
def test_output_has_every_window_that_fits(
    size: int, kernel: int, stride: int, dilation: int, before: int, after: int
) -> None:
    w = ConvWorkload(1, 1, (size,), 1, (kernel,), (stride,), (before,), (after,), (dilation,))
    padded = size + before + after
    fits = [x for x in range(0, padded, stride) if x + dilation * (kernel - 1) < padded]
    assert w.out_spatial == (len(fits),)


def test_transposed_output_is_the_inverse() -> None:
    """Of a convolution with the same window, given the rows that its stride dropped."""
    for size, kernel, stride, pad, dilation in product((7, 8), (1, 3), (1, 2, 3), (0, 1), (1, 2)):
        forward = conv_workload(2, (size,), 2, kernel, stride, pad, dilation=dilation)
        dropped = (size + 2 * pad - dilation * (kernel - 1) - 1) % stride
        backward = ConvTransposeWorkload(
            1, 2, forward.out_spatial, 2, (kernel,), (stride,), (pad,), (pad,), (dilation,),
            (dropped,),
        )  # fmt: skip
        assert backward.out_spatial == (size,)
        assert backward.out_shape == forward.in_shape


@pytest.mark.parametrize("key", [*CASES, *GROUPED])
def test_multiply_adds_are_weights_times_positions(key: str) -> None:
    w = {**CASES, **GROUPED}[key]
    weights = np.zeros((w.out_channels, w.in_channels // w.groups, *w.kernel), "float32")
    assert w.weight_bytes == weights.nbytes
    assert w.macs == weights.size * w.batch * prod(w.out_spatial)
    out = oracles.conv(w, np.zeros(w.in_shape, "float32"), weights)
    assert out.shape == w.out_shape
    assert w.flops == 2 * w.macs
    assert w.bytes == 4 * (prod(w.in_shape) + out.size) + weights.nbytes


def test_an_epilogue_adds_its_operations_and_operands() -> None:
    base = conv_workload(4, (5, 6), 7, 3, batch=2)
    w = oracles.with_residual(base)  # two additions, a relu; a bias, a residual
    elements = 2 * 7 * 3 * 4
    assert w.flops - base.flops == 3 * elements
    assert w.bytes - base.bytes == 4 * (7 + elements)


def test_a_prologue_adds_its_operations_and_constants() -> None:
    base = oracles.with_residual(conv_workload(4, (5, 6), 7, 3, batch=2))
    w = with_prologue(base)  # a multiplication, an addition, a relu; a scale and a shift
    assert w.flops - base.flops == 3 * 2 * 4 * 5 * 6
    assert w.bytes - base.bytes == 2 * 4 * 4
    assert (w.macs, w.weight_bytes, w.out_shape) == (base.macs, base.weight_bytes, base.out_shape)
    assert len({w, with_prologue(base), base}) == 2


def test_transposed_work_counts_every_tap_of_every_input() -> None:
    w = ConvTransposeWorkload(
        2, 6, (4, 5), 8, (3, 2), (2, 1), (1, 0), (0, 0), (1, 1), (0, 0), groups=2
    )
    assert w.weight_bytes == 4 * 6 * 4 * 6
    assert w.macs == 2 * (6 * 4 * 5) * 4 * 6
    assert w.out_spatial == (8, 6)


def test_depthwise_has_one_channel_a_group() -> None:
    assert GROUPED["depthwise"].depthwise
    assert not GROUPED["depth multiplier"].depthwise
    assert not CASES["3x3"].depthwise
    # One channel in all is an ordinary convolution.
    assert not conv_workload(1, (5, 5), 1, 3).depthwise


def test_equal_workloads_are_one_key() -> None:
    w = oracles.with_residual(CASES["3x3"])
    assert len({w, replace(w), oracles.with_residual(CASES["3x3"])}) == 1
    assert len({w, CASES["3x3"], replace(w, batch=2)}) == 3


def test_a_pool_stage_is_work_on_the_output_and_no_traffic() -> None:
    base = oracles.with_residual(conv_workload(4, (7, 10), 6, 3, 1, 1, batch=2))
    w = with_pool(base, "avg", 2, 2, ceil=True, include=True)
    assert (w.conv_shape, w.out_shape) == ((2, 6, 7, 10), (2, 6, 4, 5))
    assert (w.macs, w.weight_bytes) == (base.macs, base.weight_bytes)
    assert w.flops - base.flops == prod(w.out_shape) * 4
    assert base.bytes - w.bytes == 4 * (prod(w.conv_shape) - prod(w.out_shape))
    assert len({w, with_pool(base, "avg", 2, 2, ceil=True, include=True), base}) == 2


def test_a_pool_stage_is_a_workload_of_its_own() -> None:
    base = conv_workload(4, (7, 10), 6, 3, 1, 1, batch=2)
    pooling = with_pool(base, "avg", 3, 2, 1, after=(0, 1), include=True).pooling
    assert pooling is not None
    assert (pooling.shape, pooling.out_shape) == (base.out_shape, (2, 6, 3, 5))
    assert (pooling.pad_before, pooling.pad_after) == ((1, 1), (0, 1))
    assert pooling.count_include_pad
    assert base.pooling is None
