"""Weights with zeros, and convolutions of them, for the tests of sparse kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.schedules import oracles
from tests.schedules.kernels import Case
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.sparsity import Sparsity


def sparse_weights(
    shape: tuple[int, ...], density: float, rows: int = 1, seed: int = 2
) -> np.ndarray:
    """Random weights; `rows` neighbouring filters are zero in the same places."""
    rng = np.random.default_rng(seed)
    panels = -(-shape[0] // rows)
    kept = rng.random((panels, *shape[1:])) < density
    return oracles.random(shape, seed + 1) * np.repeat(kept, rows, axis=0)[: shape[0]]


def sparse_case(
    name: str, w: ConvWorkload, weights: np.ndarray, **params: object
) -> tuple[Case, np.ndarray]:
    """A convolution of random numbers with these weights, and its result."""
    w = replace(w, sparsity=Sparsity.of(weights))
    data, operands = oracles.random(w.in_shape, 1), oracles.operands_of(w)
    expected = oracles.finished(oracles.conv(w, data, weights), w, operands)
    return Case(name, w, [data], [weights], operands, params=params), expected


def weights_of_densities(shape: tuple[int, ...], empty: slice) -> dict[object, np.ndarray]:
    """Weights of all densities, with one nonzero, and with `empty` filters and a channel."""
    weights: dict[object, np.ndarray] = {d: sparse_weights(shape, d) for d in (0.01, 0.2, 0.5)}
    weights["all"] = oracles.random(shape, 3)
    weights["one"] = np.zeros(shape, "float32")
    weights["one"][7, 4, 2, 1] = 1.5
    holes = weights["empty filters and channels"] = oracles.random(shape, 3)
    holes[empty], holes[:, 2] = 0, 0
    return weights
