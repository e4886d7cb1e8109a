"""Copies of panels of the right side, in each of the ways, against NumPy's slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.schedules.snippets import Snippet, V, run_snippets
from tvm_ext.schedules import emit
from tvm_ext.schedules.gemm import Blocking
from tvm_ext.schedules.panel_copy import copy_panel, copy_way
from tvm_ext.schedules.strided_view import StridedView


@pytest.mark.parametrize(
    ("k", "n", "axes", "way"),
    [
        (9, 16, (0, 1, 2), "vectors"),
        (9, 8, (0, 1, 2), "vectors"),
        (9, 7, (0, 1, 2), "elements"),
        (9, 16, (0, 2, 1), "squares"),
        (8, 16, (0, 2, 1), "squares"),
        (7, 16, (0, 2, 1), "elements"),
        (9, 7, (0, 2, 1), "elements"),
        (9, 16, (1, 2, 0), "elements"),
    ],
)
def test_the_way_follows_the_strides(k: int, n: int, axes: tuple[int, ...], way: str) -> None:
    """`axes` is the order in which (batch, k, n) is stored."""
    shape = (3, k, n)
    stored = StridedView.contiguous([shape[a] for a in axes])
    view = stored.permute([axes.index(a) for a in range(3)])
    assert copy_way(view, k, 8) == way


def test_panels_are_copied_whole() -> None:
    snippets, wanted = {}, {}
    for way in ("vectors", "squares", "elements"):
        for steps in (V, 2 * V + 3):
            matrix = np.arange(steps * 3 * V, dtype="float32").reshape(steps, 3 * V)
            b = Blocking(rows=4, n=3 * V, k=steps, lanes=V, blocks=2, tile=4)
            stored = np.ascontiguousarray(matrix.T) if way == "squares" else matrix
            across, down = (steps, 1) if way == "squares" else (1, 3 * V)

            def body(
                source: Any, out: Any, way: str = way, b: Blocking = b,
                across: int = across, down: int = down,
            ) -> None:  # fmt: skip
                flat = emit.view(source, (b.k * b.n,))
                for panel in range(2):
                    copy_panel(
                        way, b, out, flat,
                        lambda s, column, at=1 - panel: s * down + (column + at * V) * across,
                        panel * b.steps,
                    )  # fmt: skip

            snippets[way, steps] = Snippet(body, [stored], (2 * steps, 2, V))
            panels = [matrix[:, V:], matrix[:, : 2 * V]]
            wanted[way, steps] = np.concatenate(panels).reshape(2 * steps, 2, V)
    for key, got in run_snippets(snippets).items():
        np.testing.assert_array_equal(got, wanted[key], err_msg=str(key))
