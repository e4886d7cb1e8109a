"""A channel block between planes and vectors, against numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tvm

from tests.schedules.kernels import HOST, NEON
from tvm_ext.schedules import emit
from tvm_ext.schedules.block_transpose import (
    Side,
    block_to_planes,
    planes_to_block,
    transposing_seconds,
)


def _compiled(body):
    function = emit.build(body).with_attr("global_symbol", "kernel")
    return tvm.compile(tvm.IRModule({"kernel": function}), target=HOST.tvm).mod["kernel"]


@pytest.mark.parametrize("lanes", (4, 8, 16))
@pytest.mark.parametrize("missing", (0, 3))
@pytest.mark.parametrize("size", (3, 37))
def test_there_and_back(size: int, missing: int, lanes: int) -> None:
    """With fewer channels than lanes, fewer positions than lanes, and a last tile that overlaps."""
    rows = lanes - missing
    planes = np.random.default_rng(0).standard_normal((rows, size)).astype("float32")
    block = np.zeros((size, lanes), "float32")
    block[:, :rows] = planes.T

    def side(name: str, shape: tuple[int, int], turned: bool) -> Side:
        return Side(emit.argument(name, shape), lambda i, p: [p, i] if turned else [i, p])

    there = _compiled(
        lambda: planes_to_block(
            side("data", planes.shape, False), side("out", block.shape, True), size, lanes, rows
        )
    )
    back = _compiled(
        lambda: block_to_planes(
            side("data", block.shape, True), side("out", planes.shape, False), size, lanes, rows,
            finish=lambda channel, value: value + channel,
        )
    )  # fmt: skip
    got = tvm.runtime.tensor(np.full_like(block, np.nan))
    there(tvm.runtime.tensor(planes), got)
    np.testing.assert_array_equal(got.numpy(), block)
    got = tvm.runtime.tensor(np.full_like(planes, np.nan))
    back(tvm.runtime.tensor(block), got)
    np.testing.assert_array_equal(got.numpy(), planes + np.arange(rows, dtype="float32")[:, None])


def test_seconds_by_hand() -> None:
    """A tile of 4 x 4 is 8 shuffles, two for each row."""
    peak = NEON.fma_peak
    hertz = peak / (4 * NEON.lanes)
    assert transposing_seconds(16, NEON) == pytest.approx(8 / hertz)
    assert transposing_seconds(32, replace(NEON, cores=8)) == pytest.approx(16 / hertz)
