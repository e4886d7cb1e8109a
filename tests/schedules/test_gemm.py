"""The loops and the cuts of matrix products, with toy operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm.script.ir_builder import tirx as T

from tests.schedules.snippets import Snippet, V, run_snippets
from tvm_ext.schedules import emit, gemm
from tvm_ext.schedules.gemm import Blocking


def test_packed_panels_hold_every_column() -> None:
    matrix = np.arange(3 * 20, dtype="float32").reshape(3, 20)
    panels = gemm.pack_panels(matrix, blocks=2, lanes=4)
    assert panels.shape == (3, 3, 2, 4)
    for p, first in enumerate([0, 8, 12]):
        np.testing.assert_array_equal(panels[p].reshape(3, 8), matrix[:, first : first + 8])
    np.testing.assert_array_equal(gemm.pack_panels(matrix[:, :3], 1, 4)[0, :, 0, 3], 0)


def test_blocking_counts_tasks_that_are_not_empty() -> None:
    b = Blocking(rows=23, n=100, k=60, lanes=8, blocks=2, tile=6, chunks=4, pieces=5, parts=3)
    assert (b.span, b.panels, b.chunk, b.piece_panels, b.steps) == (16, 7, 6, 2, 20)
    # Seven panels, two a piece: four pieces have work, not five.
    assert b.tasks == (4, 4)


# rows, n, k, then blocks, tile, chunks, pieces and parts.
PRODUCTS = {
    "one tile": (2, V, 5, 1, 2, 1, 1, 1),
    "ragged tiles": (13, 3 * V + 1, 17, 2, 6, 1, 1, 1),
    "below a vector": (5, 3, 8, 1, 3, 1, 1, 1),
    "chunks and pieces": (23, 5 * V, 16, 1, 4, 3, 3, 1),
    "more pieces than panels divide": (7, 7 * V, 9, 1, 7, 2, 5, 1),
    "parts of the reduction": (11, 2 * V + 3, 24, 1, 4, 2, 2, 3),
}


@pytest.mark.parametrize("fetching", [False, True])
def test_tasks_compute_the_product(fetching: bool) -> None:
    rng, snippets = np.random.default_rng(0), {}
    for key, (rows, n, k, blocks, tile, chunks, pieces, parts) in PRODUCTS.items():
        b = Blocking(rows, n, k, V, blocks, tile, chunks, pieces, parts)
        left = rng.standard_normal((rows, k)).astype("float32")
        right = rng.standard_normal((k, n)).astype("float32")

        def body(a: Any, w: Any, out: Any, b: Blocking = b) -> None:
            flat = emit.view(w, (b.panels * b.k * b.span,))

            def store(row: Any, column0: Any, c: Any, lane: Any, value: Any) -> None:
                T.buffer_store(out, value, [row, column0 + c * V + lane])

            def fetch(panel: Any, base: Any, element: Any) -> None:
                emit.prefetch(flat, [(panel * b.k + base) * b.span + element], 2)

            with emit.parallel_tasks(*b.tasks) as (chunk, piece):
                gemm.emit_task(
                    b, chunk, piece,
                    lambda row, step: a[row, step],
                    lambda panel, base: lambda step, c, lane: w[panel, base + step, c, lane],
                    store, fetch if fetching else None,
                )  # fmt: skip

        packed = gemm.pack_panels(right, blocks, V)
        snippets[key] = Snippet(body, [left, packed], (rows, n)), left.astype("float64") @ right
    results = run_snippets({key: snippet for key, (snippet, _) in snippets.items()})
    for key, (_, want) in snippets.items():
        np.testing.assert_allclose(results[key], want, rtol=1e-5, atol=1e-5, err_msg=key)
