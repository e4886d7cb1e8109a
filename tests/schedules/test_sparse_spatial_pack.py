"""`sparse_spatial_pack` against NumPy in float64, and what its panels keep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles, pooled_convolutions
from tests.schedules.convolutions import CASES, GROUPED, TOLERANCE
from tests.schedules.kernels import (
    AVX512,
    HOST,
    NEON,
    TARGETS,
    Case,
    assembly,
    fma_lines,
    run,
    same_on_any_threads,
)
from tests.schedules.oracles import conv_workload
from tests.schedules.sparse_weights import sparse_case, sparse_weights, weights_of_densities
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.sparsity import Sparsity, summarize

NAME = "sparse_spatial_pack"
V = HOST.lanes
SMALL = conv_workload(V + 3, (6, 9), 2 * V, 3, 1, 1)


def weight_shape(w: ConvWorkload) -> tuple[int, ...]:
    return (w.out_channels, w.in_channels // w.groups, *w.kernel)


def blocked_case(w: ConvWorkload, weights: np.ndarray, **params: object) -> tuple[Case, np.ndarray]:
    case, expected = sparse_case(NAME, w, weights, **params)
    return replace(case, layout=(V, V)), expected


def whole_vectors(w: ConvWorkload) -> ConvWorkload:
    """The workload with output channels that fill vectors in each group."""
    return replace(w, out_channels=w.groups * V * (1 + w.out_channels // w.groups // V))


def test_matches_numpy() -> None:
    """Every kind of convolution, with a bias, a residual and a relu in its epilogue."""
    cases = {}
    for key, w in {**CASES, **GROUPED}.items():
        w = whole_vectors(w)
        weights = sparse_weights(weight_shape(w), 0.4, rows=V)
        cases[key] = blocked_case(oracles.with_residual(w), weights)
    oracles.agree(cases, TOLERANCE)


def test_any_density() -> None:
    weights = weights_of_densities(weight_shape(SMALL), empty=slice(3, V + 2))
    oracles.agree({key: blocked_case(SMALL, x) for key, x in weights.items()}, TOLERANCE)


def test_parameters_change_the_loops_only() -> None:
    flat = conv_workload(6, (9, 11), 4 * V, 1)
    valid, batch = conv_workload(5, (7, 8), V, 3, 2), conv_workload(6, (5, 7), V, 1, batch=3)
    conv, pointwise, others, few = (
        sparse_weights(weight_shape(w), 0.4) for w in (SMALL, flat, valid, batch)
    )
    cases = {
        "one row": blocked_case(SMALL, conv, chunk=1, tile=1),
        "uneven chunks": blocked_case(SMALL, conv, chunk=4, tile=4),
        "one chunk": blocked_case(SMALL, conv, chunk=6, tile=9, blocks=1),
        "shared": blocked_case(flat, pointwise, pieces=2),
        "shared unevenly": blocked_case(flat, pointwise, pieces=2, chunk=37, tile=5),
        "copied": blocked_case(flat, pointwise, stage=True, chunk=50),
        "in place": blocked_case(valid, others, stage=False, chunk=2),
        "batch": blocked_case(batch, few, chunk=20),
    }
    oracles.agree(cases, TOLERANCE)


def test_nothing_but_zeros() -> None:
    w = oracles.with_residual(SMALL)
    case, expected = blocked_case(w, np.zeros(weight_shape(w), "float32"))
    np.testing.assert_allclose(oracles.run_all([case])[0], expected, rtol=1e-6)


def test_pools_what_it_computes() -> None:
    w = conv_workload(5, (9, 11), V, 3, 1, 1)
    w = replace(w, sparsity=Sparsity.of(sparse_weights(weight_shape(w), 0.4)))
    pooled_convolutions.assert_matches_numpy(NAME, w, (V, V), TOLERANCE)


def test_same_bits_on_any_threads() -> None:
    flat = conv_workload(6, (9, 11), 4 * V, 1)
    case, _ = blocked_case(flat, sparse_weights((4 * V, 6, 1, 1), 0.3), pieces=2, chunk=37)
    same_on_any_threads([case])


def test_what_is_zero_is_not_multiplied() -> None:
    """NaN reaches the outputs of the panels that have a weight for it, and no others."""
    w = conv_workload(3, (6, 9), 2 * V, 3, 1, 1)
    weights = np.abs(oracles.random(weight_shape(w), 2))
    weights[V:, 1] = 0
    data = oracles.random(w.in_shape, 1)
    data[0, 1, 3, 4] = np.nan
    expected = oracles.conv(w, np.where(np.isnan(data), 0, data), weights)
    expected[0, :V, 2:5, 3:6] = np.nan
    w = replace(w, sparsity=Sparsity.of(weights))
    params = {"blocks": 1}
    actual = run(NAME, w, layout=(V, V), data=[data], weights=[weights], params=params)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_broadcasts_in_the_multiply_add(target: str) -> None:
    """On AVX-512 the input's elements are the multiply-adds' own operands: no load beside them."""
    text = assembly(NAME, _pruned(), TARGETS[target], (TARGETS[target].lanes,) * 2)
    lines = fma_lines(text)
    if target == "avx512":
        assert sum("{1to16}" in line for line in lines) > 0.9 * len(lines) > 20
    else:
        assert any(".4s" in line or "ymm" in line for line in lines)


def test_refusals() -> None:
    algorithm = algorithms()[NAME]
    assert algorithm.supports(SMALL, HOST).reason == "hardly any weight is zero"
    pruned = _pruned()
    assert "float16" in algorithm.supports(replace(pruned, dtype="float16"), HOST).reason
    narrow = replace(pruned, out_channels=6)
    reason = "6 output channels a group don't fill vectors of 4"
    assert algorithm.supports(narrow, NEON).reason == reason


def test_balanced_by_what_is_kept() -> None:
    """The first filters keep all, the others one column each: the first share has one panel."""
    weights = np.zeros((64, 4, 3, 3), "float32")
    weights[:16], weights[16:, 0, 0, 0] = 1, 1
    w = replace(conv_workload(4, (6, 6), 64, 3), sparsity=Sparsity.of(weights))
    algorithm = algorithms()[NAME]
    params = {**algorithm.default(w, AVX512), "blocks": 1, "pieces": 2}
    values, columns, pointers, shares = algorithm.pack(w, params, AVX512, [weights])
    assert values.shape == (36 + 3, 1, 16) and columns.shape == (39,)
    assert pointers.tolist() == [0, 36, 37, 38, 39]
    assert shares.tolist() == [0, 1, 4]


def test_fewer_nonzeros_cost_less() -> None:
    w = conv_workload(64, (28, 28), 64, 3, 1, 1)
    seconds = []
    for density in (0.1, 0.3, 0.9):
        pruned = replace(w, sparsity=summarize(sparse_weights(weight_shape(w), density, rows=16)))
        algorithm = algorithms()[NAME]
        seconds.append(algorithm.cost(pruned, algorithm.default(pruned, NEON), NEON))
    assert 4 * seconds[0] < 2 * seconds[1] < seconds[2]


def _pruned() -> ConvWorkload:
    w = conv_workload(16, (32, 32), 32, 3, 1, 1)
    return replace(w, sparsity=Sparsity.of(sparse_weights(weight_shape(w), 0.25, rows=16)))
