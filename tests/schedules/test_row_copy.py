"""Copies of rows with their padding, and the tests of rows that may be outside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tests.schedules import oracles
from tests.schedules.convolutions import TOLERANCE
from tests.schedules.convolutions import case as conv_case
from tests.schedules.oracles import conv_workload
from tests.schedules.snippets import Snippet, V, run_snippets
from tvm_ext.schedules.conv_columns import ColumnGeometry
from tvm_ext.schedules.row_copy import copy_row, row_bounds

# width, before, length, then phases, stride: the last of one phase have more padding than the copy
# is long, or none.
PHASES = [(5, 0, 5, 1, 1), (5, 2, 9, 1, 1), (5, 1, 4, 2, 2), (6, 3, 5, 3, 3), (2, 4, 5, 1, 1),
          (1, 0, 3, 2, 2), (7, 2, 3, 2, 2), (5, 4, 3, 1, 1)]  # fmt: skip


@pytest.mark.parametrize("inside", [True, False])
def test_staged_rows_hold_what_the_phases_say(inside: bool) -> None:
    """Element x of part p is column x * stride + p - before, or zero; all zero outside."""
    snippets, wanted = {}, {}
    for case in PHASES:
        width, before, length, phases, stride = case
        row = np.arange(1, width + 1, dtype="float32")

        def body(source: Any, line: Any, out: Any, case: tuple[int, ...] = case) -> None:
            *sizes, phases, stride = case
            copy_row(
                *sizes,
                [line[0] >= tirx.const(0, "int32")],
                lambda x, _: source[x],
                lambda p, x, _, value: T.buffer_store(out, value, [p, x]),
                stride=stride,
                phases=phases,
            )

        line = np.array([0 if inside else -1], "int32")
        snippets[case] = Snippet(body, [row, line], (phases, length))
        at = np.arange(length) * stride + np.arange(phases)[:, None] - before
        held = (at >= 0) & (at < width) & inside
        wanted[case] = np.where(held, row[np.clip(at, 0, width - 1)], 0)
    for case, got in run_snippets(snippets).items():
        np.testing.assert_array_equal(got, wanted[case], err_msg=str(case))


# lanes, length, width, before: of a row, the third with more padding than the copy is long.
ROWS = [(1, 9, 5, 2), (V, 4, 6, 0), (1, 3, 5, 4), (V, 7, 2, 5), (1, 4, 9, 1)]


@pytest.mark.parametrize("valid", [(), (True,), (False,)], ids=str)
def test_rows_are_copied_between_zeros(valid: tuple[bool, ...]) -> None:
    """And nothing past the copy's end, which holds -1 before and after."""
    snippets, wanted = {}, {}
    for lanes, length, width, before in ROWS:
        row = oracles.random((width, lanes), 6)

        def body(
            source: Any, line: Any, out: Any, sizes: Any = (width, before, length), v: int = lanes
        ) -> None:
            copy_row(
                *sizes,
                [line[0] > tirx.const(0, "int32")] if valid else [],
                lambda x, lane: source[x, lane],
                lambda _, j, lane, value: T.buffer_store(out, value, [j, lane]),
                lanes=v,
            )

        line = np.array([int(all(valid))], "int32")
        key = lanes, length, width, before
        snippets[key] = Snippet(body, [row, line], (length + 6, lanes), before=-1.0)
        padded = np.pad(row * all(valid), [(before, length), (0, 0)])[:length]
        wanted[key] = np.concatenate([padded, np.full((6, lanes), -1)])
    for key, got in run_snippets(snippets).items():
        np.testing.assert_array_equal(got, wanted[key].astype("float32"), err_msg=str(key))


def test_rows_are_tested_only_where_they_can_be_outside() -> None:
    def count(**fields: Any) -> int:
        g = ColumnGeometry.of(conv_workload(2, (8, 20), 4, 3, **fields), lanes=8)
        return len(row_bounds([tirx.Var("y", "int32")], g.spatial, g.before, g.staged))

    assert count() == 0
    assert count(pad=1) == 2
    assert count(stride=2, pad=1) == 1  # the last window ends with the input


@pytest.mark.parametrize("position", [-1, 0, 2, 3])
def test_positions_that_are_known_need_no_loop(position: int) -> None:
    """A number is inside or outside for good; only what's outside leaves a condition."""
    bounds = row_bounds([position], (3,), (1,), (5,))
    assert [bool(b.value) for b in bounds] == ([] if 0 <= position < 3 else [False])


@pytest.mark.parametrize("name", ["spatial_pack", "conv_direct", "gspc", "conv_gemm"])
def test_a_single_row_may_lie_in_the_padding(name: str) -> None:
    """A 1x1 window whose stride leaves it one position, above the input."""
    w = replace(conv_workload(2, (3, 3), V, 1, 9), pad_before=(1, 0), pad_after=(0, 0))
    assert w.out_spatial == (1, 1)
    w = oracles.with_residual(w)  # what is left of the output
    layout = (0, V) if name in ("spatial_pack", "conv_gemm") else (0, 0)
    oracles.agree({"only": conv_case(name, w, layout)}, TOLERANCE)
