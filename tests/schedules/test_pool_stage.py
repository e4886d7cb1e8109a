"""Rows of a convolution that rows of its pool stage need, counted window by window."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tvm.script.ir_builder import tirx as T

from tests.schedules.kernels import HOST
from tests.schedules.oracles import conv_workload
from tests.schedules.pooled_convolutions import stages, with_pool
from tests.schedules.snippets import Snippet, run_snippets
from tvm_ext.schedules import emit, pool_stage
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload

CASES = stages(conv_workload(2, (11, 13), 4, 3, 1, 1))
PLAIN = conv_workload(2, (11, 13), 4, 3, 1, 1)


def rows_of(w: ConvWorkload, row: int) -> set[int]:
    """The rows inside the convolution's output that one row of the pool reads."""
    assert w.pool is not None
    first = row * w.pool.strides[0] - w.pool.pad_before[0]
    return set(range(first, first + w.pool.kernel[0])) & set(range(w.conv_spatial[0]))


@pytest.mark.parametrize("key", CASES)
def test_the_rows_from_the_start_are_enough(key: str) -> None:
    w = CASES[key]
    height, rows = w.conv_spatial[0], w.out_spatial[0]
    starts = {
        (first, count): Snippet(
            lambda out, first=first, count=count: T.buffer_store(
                out, emit.hold(pool_stage.first_row(w, T.Bind(first + out[0] * 0), count)), [0]
            ),
            (), (1,), "int32",
        )
        for count in {1, min(2, rows), rows}
        for first in range(rows - count + 1)
    }  # fmt: skip
    for (first, count), start in run_snippets(starts).items():
        needed = set.union(*(rows_of(w, first + i) for i in range(count)))
        inside = set(range(start[0], start[0] + pool_stage.rows_needed(w, count)))
        assert needed <= inside <= set(range(height)), (first, count)


@pytest.mark.parametrize("key", CASES)
def test_rows_pooled_is_what_so_many_rows_are_enough_for(key: str) -> None:
    w = CASES[key]
    for rows in range(w.pool.kernel[0], w.conv_spatial[0] + 1):
        pooled = pool_stage.rows_pooled(w, rows)
        assert pool_stage.rows_needed(w, pooled) <= rows
        assert pooled == w.out_spatial[0] or pool_stage.rows_needed(w, pooled + 1) > rows


def test_repetition_counts_the_rows_of_all_tasks() -> None:
    w = with_pool(conv_workload(2, (12, 12), 4, 3, 1, 1), "max", 3, 2, 1)
    # Six rows: tasks of four and two compute nine rows and five, of the twelve that there are.
    assert pool_stage.repetition(w, 4) == 14 / 12
    assert pool_stage.repetition(w, 6) == 1.0
    assert pool_stage.repetition(PLAIN, 4) == 1.0


def test_a_convolution_without_a_pool_is_as_it_was() -> None:
    assert (pool_stage.rows_needed(PLAIN, 3), pool_stage.rows_pooled(PLAIN, 3)) == (3, 3)
    assert pool_stage.stage_seconds(PLAIN, HOST) == 0
    assert pool_stage.refuse_pool(PLAIN) and pool_stage.supports_pool(PLAIN)


@pytest.mark.parametrize("name", ["gspc", "conv_gemm", "depthwise"])
def test_others_refuse(name: str) -> None:
    w = conv_workload(8, (9, 9), 8, 3, 1, 1, groups=8 if name == "depthwise" else 1)
    assert algorithms()[name].supports(w, HOST)
    assert algorithms()[name].supports(with_pool(w, "max", 2, 2), HOST).reason == "a pool stage"


def test_conditions_that_always_hold_are_none() -> None:
    def body(out: object) -> None:
        for i, conditions in enumerate(([], [True], [False], [True, False])):
            with pool_stage.when(list(conditions)):
                T.buffer_store(out, np.float32(1), [i])

    (got,) = run_snippets({0: Snippet(body, (), (4,), before=0.0)}).values()
    assert list(got) == [1, 1, 0, 0]


def test_both_strides_and_kernels_are_seen() -> None:
    for kernel, stride in product((1, 2, 3), (1, 2, 3)):
        w = with_pool(PLAIN, "max", kernel, stride)
        assert pool_stage.rows_needed(w, 2) == stride + kernel
