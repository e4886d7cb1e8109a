"""Reductions of rows that lie anywhere, and of rows that are written over as they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm.script.ir_builder import tirx as T

from tests.schedules.snippets import Snippet, V, run_snippet, run_snippets
from tvm_ext.schedules import emit
from tvm_ext.schedules.normalize_rows import RowLoops, norm_scale, reduce_row, softmax_sum


@pytest.mark.parametrize("vectors", (1, 3, 4))
def test_reductions_of_any_length(vectors: int) -> None:
    lengths = (1, 2, V - 1, V, V + 1, 4 * V + 3, 9 * V)
    snippets, wanted = {}, {}
    for n in lengths:
        data = np.arange(n, dtype="float32") - 3

        def body(source: Any, out: Any, n: int = n) -> None:
            loops = RowLoops(n, V, vectors)
            total = reduce_row(loops, lambda a, b: a + b, 0.0, lambda x: source[x])
            T.buffer_store(out, total, [0])

        snippets[n] = Snippet(body, [data], (1,))
        wanted[n] = data.sum()
    assert {n: float(got[0]) for n, got in run_snippets(snippets).items()} == wanted


def test_powers_may_take_the_place_of_whole_vectors() -> None:
    data = np.random.default_rng(0).standard_normal((2, 3 * V)).astype("float32")

    def body(source: Any, out: Any) -> None:
        row = emit.workspace((3 * V,))
        with emit.loop(3 * V) as x:
            T.buffer_store(row, source[1, x], [x])

        def keep(x: Any, power: Any) -> None:
            T.buffer_store(row, power, [x])

        top, total = softmax_sum(RowLoops(3 * V, V, 2), lambda x: row[x], keep)
        T.buffer_store(out, top, [0])
        T.buffer_store(out, total, [1])
        with emit.loop(3 * V) as x:
            T.buffer_store(out, row[x], [x + 2])

    got = run_snippet(body, data, shape=(3 * V + 2,))
    powers = np.exp(data[1].astype("float64") - data[1].max())
    np.testing.assert_allclose(got, [data[1].max(), powers.sum(), *powers], rtol=1e-6)


@pytest.mark.parametrize("centred", (False, True))
def test_norms_of_a_column(centred: bool) -> None:
    """Elements that are a stride apart, far from zero."""
    data = np.random.default_rng(1).standard_normal((2 * V + 5, 3)).astype("float32") + 100

    def body(source: Any, out: Any) -> None:
        loops = RowLoops(len(data), V, 4)
        for i, value in enumerate(norm_scale(loops, lambda x: source[x, 1], 1e-5, centred)):
            T.buffer_store(out, value, [i])

    column = data[:, 1].astype("float64")
    mean = column.mean() if centred else 0.0
    want = [mean, 1 / np.sqrt(((column - mean) ** 2).mean() + 1e-5)]
    np.testing.assert_allclose(run_snippet(body, data, shape=(2,)), want, rtol=2e-6)
