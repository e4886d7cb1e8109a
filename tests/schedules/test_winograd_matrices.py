"""Winograd's transforms in rational and float32 arithmetic, and the code for small linear maps."""

from __future__ import annotations

import numpy as np
import pytest
from tvm.script.ir_builder import tirx as T

from tests.schedules import oracles
from tests.schedules.snippets import Snippet, V, run_snippets
from tvm_ext.schedules.winograd_matrices import TRANSFORMS, emit_linear_map, transform_weights


@pytest.mark.parametrize("m", TRANSFORMS)
def test_one_dimensional_transform_is_exact(m):
    """A^T [(G g) * (B^T d)] is the correlation of d with g, in rational numbers."""
    t, rng = TRANSFORMS[m], np.random.default_rng(0)
    d, g = rng.standard_normal(m + 2), rng.standard_normal(3)
    left, kernel, right = (np.asarray(x, "float64") for x in (t.output, t.kernel, t.input))
    np.testing.assert_allclose(left @ ((kernel @ g) * (right @ d)), np.correlate(d, g), rtol=1e-12)


def test_weights_are_transformed_on_both_sides():
    g = np.asarray(TRANSFORMS[2].kernel)
    weight = oracles.random((3, 2, 3, 3), 0)
    expected = g @ weight[2, 1].astype("float64") @ g.T
    np.testing.assert_allclose(transform_weights(weight, 2)[:, :, 2, 1], expected, rtol=1e-12)


@pytest.mark.parametrize("m", TRANSFORMS)
def test_float32_error_is_below_the_stated_tolerance(m):
    """All of the method in float32 NumPy, on many tiles and 64 channels, against float64."""
    t, rng = TRANSFORMS[m], np.random.default_rng(1)
    a = m + 2
    tiles = rng.standard_normal((200, 64, a, a)).astype("float32")
    weight = rng.standard_normal((1, 64, 3, 3)).astype("float32")
    left, right = (np.asarray(x, "float32") for x in (t.output, t.input))
    frequencies = transform_weights(weight, m)[:, :, 0].astype("float32")
    products = (right @ tiles @ right.T) * frequencies.transpose(2, 0, 1)
    actual = left @ products.sum(1) @ left.T
    exact = np.zeros((200, m, m))
    for y in range(3):
        for x in range(3):
            window = tiles[:, :, y : y + m, x : x + m].astype("float64")
            exact += np.einsum("c,tcyx->tyx", weight[0, :, y, x], window)
    assert np.abs(actual - exact).max() / np.abs(exact).max() < t.tolerance


def _map_snippet(matrix, data):
    def body(source, out):
        emit_linear_map(
            matrix,
            V,
            lambda j, lane: source[j, lane],
            lambda i, lane, value: T.buffer_store(out, value, [i, lane]),
        )

    return Snippet(body, [data], (len(matrix), V))


def test_linear_maps_compute_the_matrix_product():
    rng = np.random.default_rng(2)
    matrices = {(m, side): getattr(t, side) for m, t in TRANSFORMS.items()
                for side in ("input", "kernel", "output")}  # fmt: skip
    matrices["pairs of rows"] = ((1, 2, 3), (1, -2, 3), (1, 2, -3), (0, 0, 0))
    matrices["pairs of columns"] = ((1, -1, 0), (2, 2, 1), (3, -3, 0))
    matrices["one row"] = ((-1, 0.5, 0, 4),)
    snippets = {
        key: _map_snippet(matrix, rng.standard_normal((len(matrix[0]), V)).astype("float32"))
        for key, matrix in matrices.items()
    }
    for key, got in run_snippets(snippets).items():
        want = np.asarray(matrices[key], "float64") @ snippets[key].inputs[0]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=str(key))
