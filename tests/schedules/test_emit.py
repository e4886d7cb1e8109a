"""The building blocks of kernels: loops, register tiles, panels, operands."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tests.schedules.snippets import Snippet, V, run_snippet, run_snippets
from tvm_ext.schedules import emit
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("width", [1, 3, 6, 7])
@pytest.mark.parametrize("extent", [1, 5, 6, 7, 13, 49])
def test_split_covers_the_extent_in_even_tiles(extent: int, width: int) -> None:
    parts = emit.split_extent(extent, width)
    assert sum(count * size for count, size in parts) == extent
    sizes = [size for _, size in parts]
    assert max(sizes) <= width
    assert max(sizes) - min(sizes) <= 1


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


@pytest.mark.parametrize(("blocks", "width"), [(1, 1), (5, 2), (6, 3), (7, 3), (2, 2)])
def test_panels_cover_all_blocks_and_the_last_overlaps(blocks: int, width: int) -> None:
    starts = [emit.panel_start(p, width, blocks) for p in range(-(-blocks // width))]
    assert set().union(*(range(s, s + width) for s in starts)) == set(range(blocks))
    data = floats(3, blocks, 2)
    panels = emit.cut_panels(data, 1, width, at=0)
    assert panels.shape == (len(starts), 3, width, 2)
    for panel, start in zip(panels, starts, strict=True):
        np.testing.assert_array_equal(panel, data[:, start : start + width])


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


OPERANDS = [
    (10,),
    (1,),
    (4, 1),
    (3, 1, 10),
    (2, 1, 4, 1),
    (2, 3, 4, 10),
    (1, 1, 1, 1),
    (1, 3, 1, 10),
]


@pytest.mark.parametrize("shape", OPERANDS, ids=str)
def test_rowwise_epilogue_broadcasts_as_numpy(shape: tuple[int, ...]) -> None:
    out_shape = (2, 3, 4, 10)
    steps = (Step("add", (("value", 0), ("operand", 0))),)
    epilogue = Epilogue(steps, (Operand(shape, "float32"),))
    result, operand = floats(24, 10), floats(*shape, seed=1)

    def body(source, x, out) -> None:
        finish = emit.rowwise_epilogue(epilogue, [x], out_shape)
        with emit.nest((24, 10)) as (row, column):
            T.buffer_store(out, finish(row, column, source[row, column]), [row, column])

    got = run_snippet(body, result, operand, shape=(24, 10))
    want = (result.reshape(out_shape) + operand).reshape(24, 10)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("block", [0, 4])
def test_epilogue_reads_operands_in_the_outputs_layout(block: int) -> None:
    """One of every channel, one of a single channel, one of every element."""
    shapes = [(1, 8, 1), (2, 1, 3), (2, 8, 3)]
    arrays = [floats(*s, seed=i) for i, s in enumerate(shapes)]
    steps = tuple(Step("add", (("value", i), ("operand", i))) for i in range(3))
    epilogue = Epilogue(steps, tuple(Operand(s, "float32") for s in shapes))

    def stored(x: np.ndarray) -> np.ndarray:
        if not block or x.shape[1] == 1:
            return x
        return np.ascontiguousarray(np.moveaxis(x.reshape(x.shape[0], 2, 4, -1), 2, -1))

    def body(*buffers) -> None:
        *operands, out = buffers
        with emit.nest(out.shape if not block else (2, 2, 3, 4)) as index:
            one = tirx.const(1.0, "float32")
            value = emit.apply_epilogue(epilogue, operands, block, index, [one])
            T.buffer_store(out, value, index)

    want = stored(1 + arrays[0] + arrays[1] + arrays[2])
    got = run_snippet(body, *(stored(x) for x in arrays), shape=want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_held_values_are_computed_where_they_stand() -> None:
    """The kernel overwrites what the value was computed from before it is used."""

    def body(out) -> None:
        T.buffer_store(out, tirx.const(3.0, "float32"), [0])
        value = emit.hold(out[0] + tirx.const(1.0, "float32"))
        T.buffer_store(out, tirx.const(0.0, "float32"), [0])
        T.buffer_store(out, value * value, [1])

    np.testing.assert_array_equal(run_snippet(body, shape=(2,)), [0, 16])


def test_unrolling_takes_the_largest_divisor() -> None:
    assert [emit.largest_divisor(n, 8) for n in (1, 7, 12, 13, 64)] == [1, 7, 6, 1, 8]


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
