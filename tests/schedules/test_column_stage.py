"""Copies in phases of columns against NumPy's padding and slicing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm.script.ir_builder import tirx as T

from tests.schedules import oracles
from tests.schedules.oracles import conv_workload
from tests.schedules.snippets import Snippet, run_snippets
from tvm_ext.schedules import emit
from tvm_ext.schedules.column_stage import stage_columns
from tvm_ext.schedules.conv_columns import ColumnGeometry

# The convolution, a group, the first row of a task and how many it has.
TASKS = {
    "padded": (conv_workload(4, (6, 7), 4, 3, 1, 1), 0, 2, 3),
    "first rows": (conv_workload(2, (6, 7), 4, 3, 1, 1), 0, 0, 2),
    "last rows": (conv_workload(2, (6, 7), 4, 3, 1, 1), 0, 4, 2),
    "phases": (conv_workload(2, (9, 8), 4, 3, 2, 1), 0, 1, 3),
    "dilated": (conv_workload(2, (9, 9), 4, 3, 1, 2, dilation=2), 0, 3, 2),
    "padding past the input": (conv_workload(2, (2, 3), 4, 2, 1, 4), 0, 5, 4),
    "one dimension": (conv_workload(4, (15,), 4, 5, 2, 2), 0, 0, 1),
    "three dimensions": (conv_workload(2, (3, 4, 5), 4, 3, 1, 1), 0, 1, 2),
    "second group": (conv_workload(8, (4, 5), 4, 3, 1, 1, groups=2), 1, 0, 4),
}


@pytest.mark.parametrize("tile", [1, 2])
def test_copies_hold_the_rows_of_a_task(tile: int) -> None:
    snippets, wanted = {}, {}
    for key, (one, group, first, count) in TASKS.items():
        w = replace(one, batch=2)
        g, each = ColumnGeometry.of(w, 8), w.in_channels // w.groups
        data = oracles.random((2, w.in_channels, *g.spatial), 3)
        reach, stride = g.reach(count), g.stride[-1]
        length = -(-reach[-1] // stride)
        x = data[1, group * each : (group + 1) * each]
        x = np.pad(x, [(0, 0), *((b, r) for b, r in zip(g.before, g.staged, strict=True))])
        start = first * g.stride[0]
        x = x[(slice(None), slice(start, start + reach[0]), *(slice(0, n) for n in reach[1:-1]))]
        parts = [x[..., p : p + length * stride : stride] for p in range(g.phases)]
        want = np.stack(parts, axis=-2).reshape(each // tile, tile, *reach[:-1], g.phases, length)
        wanted[key] = want = np.moveaxis(want, 1, -3)

        def body(source: Any, out: Any, task: Any = (w, g, group, first, count)) -> None:
            w, g, group, first, count = task
            copy = stage_columns(w, g, tile, source, 1, group, first, count)
            with emit.nest([int(n) for n in out.shape]) as at:
                T.buffer_store(out, copy[at], at)

        snippets[key] = Snippet(body, [data], want.shape)
    for key, got in run_snippets(snippets).items():
        np.testing.assert_array_equal(got, wanted[key], err_msg=key)
