"""`block_sparse` and `csr` against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import CASES, GROUPED, TOLERANCE
from tests.schedules.kernels import HOST, TARGETS, assembly, fma_lines, run, same_on_any_threads
from tests.schedules.oracles import conv_workload
from tests.schedules.sparse_weights import sparse_case, sparse_weights, weights_of_densities
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.sparsity import Sparsity, summarize

NAMES = ("block_sparse", "csr")
SMALL = conv_workload(5, (6, 9), 12, 3, 1, 1)


def weight_shape(w: ConvWorkload) -> tuple[int, ...]:
    return (w.out_channels, w.in_channels // w.groups, *w.kernel)


@pytest.mark.parametrize("name", NAMES)
def test_matches_numpy(name: str) -> None:
    """Every kind of convolution, with a bias, a residual and a relu in its epilogue."""
    workloads = {**CASES, **GROUPED, "full vectors": conv_workload(6, (8, 8), 16, 1)}
    cases = {}
    for key, w in workloads.items():
        if name == "block_sparse" and (w.out_channels // w.groups) % 2 and w.groups > 1:
            continue
        weights = sparse_weights(weight_shape(w), 0.4, rows=2)
        cases[key] = sparse_case(name, oracles.with_residual(w), weights)
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shifted", [False, True])
def test_shifted_or_not(name: str, shifted: bool) -> None:
    """Strides, dilations, other dimensions; SMALL's rows stay 9 long, those of 14 become 16."""
    padded = conv_workload(3, (5, 14), 8, 3, 1, 1)
    workloads = {"9": SMALL, "14": padded, **{k: w for k, w in CASES.items() if w.kernel[-1] > 1}}
    assert len(workloads) > 5
    cases = {
        key: sparse_case(
            name, oracles.with_residual(w), sparse_weights(weight_shape(w), 0.8), shifted=shifted
        )
        for key, w in workloads.items()
        if name == "csr" or w.out_channels % 2 == 0
    }
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_any_density(name: str) -> None:
    weights = weights_of_densities(weight_shape(SMALL), empty=slice(3, 9))
    oracles.agree({key: sparse_case(name, SMALL, x) for key, x in weights.items()}, TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_but_zeros(name: str) -> None:
    w = oracles.with_residual(SMALL)
    case, expected = sparse_case(name, w, np.zeros(weight_shape(w), "float32"))
    np.testing.assert_allclose(oracles.run_all([case])[0], expected, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_change_the_loops_only(name: str) -> None:
    flat = conv_workload(6, (9, 11), 20, 1)
    conv, pointwise = sparse_weights((12, 5, 3, 3), 0.4), sparse_weights((20, 6, 1, 1), 0.4)
    rows = 1 if name == "csr" else 4
    cases = {
        "one row": sparse_case(name, SMALL, conv, chunk=1, vectors=1),
        "uneven chunks": sparse_case(name, SMALL, conv, chunk=4, vectors=2),
        "one chunk": sparse_case(name, SMALL, conv, chunk=6, vectors=3, channels=rows),
        "shared": sparse_case(name, SMALL, conv, pieces=2),
        "channel by channel": sparse_case(name, SMALL, conv, depth=1),
        "two parts": sparse_case(name, flat, pointwise, depth=3, chunk=32),
        "three parts, shared": sparse_case(name, flat, pointwise, depth=2, pieces=2),
        "all at once": sparse_case(name, flat, pointwise, depth=6),
        "positions": sparse_case(name, flat, pointwise, chunk=16, vectors=1),
        "uneven positions": sparse_case(name, flat, pointwise, chunk=37, vectors=2, channels=rows),
    }
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_same_bits_on_any_threads(name: str) -> None:
    case, _ = sparse_case(name, SMALL, sparse_weights(weight_shape(SMALL), 0.3), pieces=2, chunk=3)
    same_on_any_threads([case])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_zero_is_not_multiplied(name: str) -> None:
    """NaN and infinities reach the outputs that have a weight for them, and no others."""
    w = conv_workload(3, (6, 9), 8, 3, 1, 1)
    weights = np.abs(oracles.random(weight_shape(w), 2))
    weights[4:, 1] = 0
    data = oracles.random(w.in_shape, 1)
    data[0, 1, 3, 4] = np.nan
    finite = np.where(np.isnan(data), 0, data)
    expected = oracles.conv(w, finite, weights)
    expected[0, :4, 2:5, 3:6] = np.nan
    w = replace(w, sparsity=Sparsity.of(weights))
    actual = run(name, w, data=[data], weights=[weights])
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_uses_vectors(target: str) -> None:
    lines = fma_lines(assembly("block_sparse", _pruned(), TARGETS[target]))
    assert any("zmm" in line if target == "avx512" else ".4s" in line for line in lines)


def test_refusals() -> None:
    algorithm = algorithms()["block_sparse"]
    assert algorithm.supports(SMALL, HOST).reason == "hardly any weight is zero"
    pruned = _pruned()
    assert "float16" in algorithm.supports(replace(pruned, dtype="float16"), HOST).reason
    depthwise = replace(GROUPED["depthwise"], sparsity=Sparsity.of(np.eye(13, 9)))
    reason = "1 output channels a group don't fill panels of 2"
    assert algorithm.supports(depthwise, HOST).reason == reason
    assert algorithms()["csr"].supports(depthwise, HOST)


def test_balanced_by_what_is_kept() -> None:
    """The first filters keep all, the others one column each: the first share has few panels."""
    weights = np.zeros((32, 4, 3, 3), "float32")
    weights[:8], weights[8:, 0, 0, 0] = 1, 1
    w = replace(conv_workload(4, (6, 6), 32, 3), sparsity=Sparsity.of(weights))
    algorithm = algorithms()["block_sparse"]
    params = {**algorithm.default(w, HOST), "channels": 8, "pieces": 2}
    values, _, pointers, shares = algorithm.pack(w, params, HOST, [weights])
    assert values.shape == (36 + 3, 8)
    assert pointers.tolist() == [0, 36, 37, 38, 39]
    assert shares.tolist() == [0, 1, 4]


def test_fewer_nonzeros_cost_less() -> None:
    w, target = conv_workload(64, (28, 28), 64, 3, 1, 1), TARGETS["neon"]
    seconds = []
    for density in (0.1, 0.3, 0.9):
        pruned = replace(w, sparsity=summarize(sparse_weights(weight_shape(w), density, rows=16)))
        algorithm = algorithms()["block_sparse"]
        seconds.append(algorithm.cost(pruned, algorithm.default(pruned, target), target))
    assert 4 * seconds[0] < 2 * seconds[1] < seconds[2]


def _pruned() -> ConvWorkload:
    w = conv_workload(16, (32, 32), 32, 3, 1, 1)
    return replace(w, sparsity=Sparsity.of(sparse_weights(weight_shape(w), 0.25, rows=16)))
