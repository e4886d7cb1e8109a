"""Staged inputs against NumPy's padding and slicing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tvm.script.ir_builder import tirx as T

from tests.schedules import oracles
from tests.schedules.kernels import HOST
from tests.schedules.oracles import conv_workload
from tests.schedules.prologues import constants_of, processed, with_prologue
from tests.schedules.snippets import Snippet, V, run_snippets
from tvm_ext.schedules import conv_stage, emit
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_prologue import pack_constants
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.layout import to_blocked

# The convolution, a group, where a task starts and how many rows it has.
TASKS = {
    "padded": (conv_workload(3, (6, 7), 4, 3, 1, 1), 0, (2,), 3),
    "first rows": (conv_workload(3, (6, 7), 4, 3, 1, 1), 0, (0,), 2),
    "last rows": (conv_workload(3, (6, 7), 4, 3, 1, 1), 0, (4,), 2),
    "strided": (conv_workload(5, (9, 8), 4, 3, 2, 1), 0, (1,), 3),
    "dilated": (conv_workload(2, (9, 9), 4, 3, 1, 2, dilation=2), 0, (3,), 2),
    "uneven padding": (replace(conv_workload(2, (6, 6), 4, 3), pad_after=(2, 3)), 0, (3,), 3),
    "padding past the input": (conv_workload(2, (2, 3), 4, 2, 1, 4), 0, (5,), 4),
    "padding alone": (replace(conv_workload(2, (3, 3), 4, 2, 8), pad_before=(4, 4)), 0, (0,), 1),
    "one dimension": (conv_workload(4, (15,), 4, 5, 2, 2), 0, (0,), 1),
    "three dimensions": (conv_workload(2, (3, 4, 5), 4, 3, 1, 1), 0, (2, 1), 2),
    "strided slices": (conv_workload(2, (5, 6, 4), 4, (2, 3, 3), 2, 1), 0, (1, 0), 2),
    "second group": (conv_workload(2 * V, (4, 5), 4, 3, 1, 1, groups=2), 1, (0,), 4),
    "group inside a block": (conv_workload(6, (4, 5), 4, 3, 1, 1, groups=2), 1, (1,), 2),
}


Origin = tuple[int, ...]


def expected(
    w: ConvWorkload, data: np.ndarray, group: int, origin: Origin, count: int
) -> np.ndarray:
    """(channels of the group, *slices and rows that the task reads, whole rows)."""
    g, each = ConvGeometry.of(w), w.in_channels // w.groups
    x = data[-1, group * each : (group + 1) * each].astype("float64")
    x = x.reshape(each, *g.spatial)
    reach = [max(n, s + b) for n, s, b in zip(g.spatial, g.staged, g.before, strict=True)]
    pads = [(b, r) for b, r in zip(g.before, reach, strict=True)]
    x = np.pad(x, [(0, 0), *pads])
    spans = [d * (k - 1) + 1 for d, k in zip(g.dilation, g.kernel, strict=True)][:-1]
    spans[-1] += (count - 1) * g.stride[-2]
    starts = [o * t for o, t in zip(origin, g.stride, strict=False)]
    parts = [slice(a, a + n) for a, n in zip(starts, spans, strict=True)]
    return x[(slice(None), *parts, slice(0, g.staged[-1]))]


def snippet(
    w: ConvWorkload, block: int, group: int, origin: Origin, count: int,
    constants: Sequence[np.ndarray] = (),
) -> Snippet:  # fmt: skip
    """Stage one task of the last image and write the copy out, blocks taken apart."""
    g, each = ConvGeometry.of(w), w.in_channels // w.groups
    data = oracles.random(w.in_shape, 3)
    want = expected(w, data, group, origin, count)

    def body(source, *rest) -> None:
        *given, out = rest
        lifted = conv_stage.lifted_input(w, g, source, block)
        staged = conv_stage.stage(w, g, lifted, block, w.batch - 1, group, origin, count, given)
        assert staged.staged
        with emit.nest(want.shape) as (c, *at):
            where = (c // block, *at, c % block) if block else (c, *at)
            T.buffer_store(out, staged.buffer[where], [c, *at])

    assert want.shape[0] == each
    return Snippet(body, [to_blocked(data, block), *constants], want.shape)


@pytest.mark.parametrize("block", [0, V])
def test_copies_are_padded_with_zeros(block: int) -> None:
    tasks = {k: (replace(w, batch=2), *rest) for k, (w, *rest) in TASKS.items()}
    snippets = {key: snippet(w, block, *rest) for key, (w, *rest) in tasks.items()}
    for key, got in run_snippets(snippets).items():
        w, *rest = tasks[key]
        want = expected(w, oracles.random(w.in_shape, 3), *rest)
        np.testing.assert_array_equal(got, want.astype("float32"), err_msg=key)


@pytest.mark.parametrize("block", [0, V])
def test_the_prologue_leaves_the_padding_zero(block: int) -> None:
    cases, snippets = {}, {}
    for key, (w, *rest) in TASKS.items():
        w = with_prologue(replace(w, batch=2))
        constants = constants_of(w)
        cases[key] = expected(w, processed(oracles.random(w.in_shape, 3), constants), *rest)
        flat = pack_constants(w, HOST, constants)
        snippets[key] = snippet(w, block, *rest, constants=flat)
    for key, got in run_snippets(snippets).items():
        np.testing.assert_allclose(got, cases[key], 1e-5, 1e-6, err_msg=key)
        np.testing.assert_array_equal(got == 0, cases[key] == 0, err_msg=key)


@pytest.mark.parametrize("block", [0, V])
@pytest.mark.parametrize("stride", [1, 2])
def test_flat_copies_hold_the_positions_that_the_strides_leave(stride: int, block: int) -> None:
    w = conv_workload(5, (7, 8), 4, 1, stride)
    g, data = ConvGeometry.of(w), oracles.random((1, 5, 7, 8), 4)
    positions = data[0, :, ::stride, ::stride]
    # Rows of a strided one, positions of the other.
    first, count = (1, 2) if stride > 1 else (9, 11)
    rows = positions[:, first : first + count] if stride > 1 else positions.reshape(5, -1)[:, 9:20]
    want = rows.reshape(5, -1)

    def body(source, out) -> None:
        lifted = conv_stage.lifted_input(w, g, source, block)
        staged = conv_stage.stage(w, g, lifted, block, 0, 0, (first,), count)
        with emit.nest(want.shape) as (c, x):
            where = (c // block, 0, x, c % block) if block else (c, 0, x)
            T.buffer_store(out, staged.buffer[where], [c, x])

    copy = Snippet(body, [to_blocked(data, block)], want.shape)
    np.testing.assert_array_equal(run_snippets({0: copy})[0], want)


@pytest.mark.parametrize("staged", [False, True])
def test_loads_follow_the_window(staged: bool) -> None:
    """Every tap of every output of a task, in place and from the copy."""
    w = conv_workload(4, (9, 10), 4, 3, 2, dilation=2, groups=2)
    g, data = ConvGeometry.of(w), oracles.random((1, 4, 9, 10), 5)
    group, first, count, columns = 1, 1, 2, g.out[1]

    def body(source, out) -> None:
        lifted = conv_stage.lifted_input(w, g, source, 0)
        read = conv_stage.Source(lifted, staged=False)
        if staged:
            read = conv_stage.stage(w, g, lifted, 0, 0, group, (first,), count)
        with emit.nest((2, count, columns, 3, 3)) as (c, row, column, i, j):
            value = read.load(g, 0, group, 2, 0, c, row, column, (i, j), 0, (first,))
            T.buffer_store(out, value, [c, row, column, i, j])

    want = np.empty((2, count, columns, 3, 3), "float32")
    for c, row, column, i, j in np.ndindex(*want.shape):
        want[c, row, column, i, j] = data[0, 2 + c, 2 * (first + row) + 2 * i, 2 * column + 2 * j]
    got = run_snippets({0: Snippet(body, [data], want.shape)})[0]
    np.testing.assert_array_equal(got, want)
