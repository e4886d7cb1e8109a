"""The building blocks of kernels: loops, register tiles, vectors, prefetches."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tests.schedules.snippets import Snippet, V, run_snippet, run_snippets
from tvm_ext.schedules import emit


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("extents", [(1,), (4,), (2, 3), (1, 5, 1), (2, 1, 3), (2, 2, 3)])
def test_parallel_tasks_are_every_index_once(extents: tuple[int, ...]) -> None:
    numbers = np.arange(np.prod(extents), dtype="float32").reshape(extents)

    def body(source, out, parallel: bool) -> None:
        with emit.tasks(parallel, *extents) as index:
            T.buffer_store(out, source[index], index)

    snippets = {
        p: Snippet(lambda s, o, p=p: body(s, o, p), [numbers], extents) for p in (False, True)
    }
    for got in run_snippets(snippets).values():
        np.testing.assert_array_equal(got, numbers)


# The second is larger than what TVM keeps on the stack in one buffer.
@pytest.mark.parametrize(("rows", "columns"), [(3, 2), (20, 2)])
def test_register_tiles_accumulate_products(rows: int, columns: int) -> None:
    steps = 7
    left, right = floats(steps, rows), floats(steps, columns, V, seed=1)

    def body(a, b, out) -> None:
        acc = emit.RegisterTile(rows, columns, V)
        acc.zero()
        with emit.loop(steps) as k:
            acc.multiply_add(lambda r: a[k, r], lambda c, lane: b[k, c, lane])
        acc.each(lambda r, c, lane: T.buffer_store(out, acc.get(r, c, lane), [r, c, lane]))

    got = run_snippet(body, left, right, shape=(rows, columns, V))
    want = np.einsum("kr,kcl->rcl", left.astype("float64"), right)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_cover_ends_with_the_extent() -> None:
    """Also an extent below a vector, and one that no power of two divides."""
    snippets = {}
    for extent in (1, 3, V - 1, V, V + 1, 3 * V + 5):

        def body(source, out, extent: int = extent) -> None:
            def vector(start, lanes: int) -> None:
                with T.vectorized(0, lanes) as lane:
                    T.buffer_store(out, source[start + lane] * 2.0, [start + lane])

            emit.cover(extent, V, vector)

        snippets[extent] = Snippet(body, [floats(extent)], (extent,))
    for extent, got in run_snippets(snippets).items():
        np.testing.assert_array_equal(got, 2 * snippets[extent].inputs[0])


def test_held_values_are_computed_where_they_stand() -> None:
    """The kernel overwrites what the value was computed from before it is used."""

    def body(out) -> None:
        T.buffer_store(out, tirx.const(3.0, "float32"), [0])
        value = emit.hold(out[0] + tirx.const(1.0, "float32"))
        T.buffer_store(out, tirx.const(0.0, "float32"), [0])
        T.buffer_store(out, value * value, [1])

    np.testing.assert_array_equal(run_snippet(body, shape=(2,)), [0, 16])


@pytest.mark.parametrize(
    ("floats_ahead", "turns", "share"),
    [(64, 4, 1), (64, 3, 2), (16, 2, 1), (64, 1, 0), (16, 100, 0)],
    ids=["a line a turn", "uneven", "fewer lines than turns", "one turn", "high reuse"],
)
def test_prefetches_spread_over_the_turns(floats_ahead: int, turns: int, share: int) -> None:
    """Counted in the code of one turn; a line is 16 floats."""

    def body() -> None:
        flat = emit.argument("flat", (4096,))
        with emit.loop(turns) as turn:
            emit.prefetch_ahead(flat, 128, floats_ahead, turn, turns)
            T.evaluate(tirx.const(0, "int32"))

    assert str(emit.build(body)).count("llvm.prefetch") == share


def test_flat_index_is_row_major() -> None:
    assert emit.flat_index((1, 2, 3), (4, 5, 6)) == np.ravel_multi_index((1, 2, 3), (4, 5, 6))
    assert emit.flat_index((), ()) == 0
