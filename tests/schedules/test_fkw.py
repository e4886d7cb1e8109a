"""`fkw` against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import CASES, GROUPED, TOLERANCE
from tests.schedules.kernels import HOST, TARGETS, assembly, fma_lines, run, same_on_any_threads
from tests.schedules.oracles import conv_workload
from tests.schedules.sparse_weights import sparse_case, sparse_weights
from tests.schedules.test_sparse_conv import weight_shape
from tests.sparsity.patterned import patterned
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.sparsity import Sparsity

SMALL = conv_workload(5, (6, 9), 12, 3, 1, 1)
PATTERNED = {
    key: w
    for key, w in (CASES | GROUPED).items()
    if len(w.kernel) == 2 and w.kernel != (1, 1)
}  # fmt: skip
MORE = {
    "stride 3 and 2": replace(conv_workload(5, (17, 23), 6, 3, 1, 1), strides=(3, 2)),
    "dilation and stride": conv_workload(4, (19, 21), 6, 3, 2, 2, dilation=2),
    "wide": conv_workload(3, (4, 75), 4, 3, 1, 1),
    "wide, stride 2": conv_workload(3, (5, 75), 4, 5, 2, 2),
    "no padding": conv_workload(3, (7, 7), 4, 3),
    "row kernel": conv_workload(6, (7, 12), 8, (1, 5), 1, (0, 2)),
    "many channels": conv_workload(300, (4, 4), 3, 3, 1, 1),
    "batch 3": conv_workload(4, (8, 8), 7, 3, 1, 1, batch=3),
}


def test_matches_numpy() -> None:
    """Every kind of convolution, with a bias, a residual and a relu in its epilogue."""
    cases = {
        key: sparse_case("fkw", oracles.with_residual(w), patterned(weight_shape(w), seed=1))
        for key, w in {**PATTERNED, **MORE}.items()
    }
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("entries", [1, 2, 9])
def test_any_number_of_taps(entries: int) -> None:
    """And any share of the kernels, none in some filters and channels."""
    shape = weight_shape(SMALL)
    cases = {c: patterned(shape, 3, entries, c) for c in (0.1, 0.2, 0.5, 0.99)}
    gaps = patterned(shape, 3, entries)
    gaps[3:9] = 0
    gaps[:, 2] = 0
    cases["empty filters and channels"] = gaps
    oracles.agree({key: sparse_case("fkw", SMALL, x) for key, x in cases.items()}, TOLERANCE)


def test_one_weight() -> None:
    weights = np.zeros(weight_shape(SMALL), "float32")
    weights[7, 4, 2, 1] = 1.5
    oracles.agree({"one": sparse_case("fkw", SMALL, weights)}, TOLERANCE)


def test_nothing_but_zeros() -> None:
    w = oracles.with_residual(SMALL)
    case, expected = sparse_case("fkw", w, np.zeros(weight_shape(w), "float32"))
    np.testing.assert_allclose(oracles.run_all([case])[0], expected, rtol=1e-6)


def test_parameters_change_the_loops_only() -> None:
    wide = conv_workload(5, (6, 3 * HOST.lanes), 4, 3, 1, 1)
    narrow = conv_workload(5, (8, HOST.lanes // 2 - 1), 4, 3, 1, 1)
    small, other = patterned(weight_shape(SMALL)), patterned(weight_shape(wide))
    cases = {
        "one row": sparse_case("fkw", SMALL, small, rows=1, chunk=1),
        "uneven chunks": sparse_case("fkw", SMALL, small, rows=2, chunk=4),
        "one chunk": sparse_case("fkw", SMALL, small, rows=3, chunk=6, pieces=3),
        "narrow strips": sparse_case("fkw", wide, other, strip=1, chunk=3),
        "wide strips": sparse_case("fkw", wide, other, strip=2, chunk=4, rows=3),
        "folded": sparse_case("fkw", narrow, other, fold=2, chunk=6, rows=2),
        "unevenly folded": sparse_case("fkw", narrow, other, fold=2, chunk=5, rows=2),
        "not folded": sparse_case("fkw", narrow, other, fold=1),
    }
    oracles.agree(cases, TOLERANCE)


def test_same_bits_on_any_threads() -> None:
    case, _ = sparse_case("fkw", SMALL, patterned(weight_shape(SMALL)), pieces=2, chunk=3)
    same_on_any_threads([case])


def test_what_is_zero_is_not_multiplied() -> None:
    """A NaN reaches the outputs that have a weight for it, and no others."""
    w = conv_workload(2, (6, 9), 2, 3, 1, 1)
    weights = np.zeros(weight_shape(w), "float32")
    weights[0, 0, 1, 0], weights[0, 1, 1, 1], weights[1, 0, 2, 1] = 1, 2, 3
    data = oracles.random(w.in_shape, 1)
    data[0, 0, 3, 4] = np.nan
    finite = np.where(np.isnan(data), 0, data)
    expected = oracles.conv(w, finite, weights)
    # A tap one column before reads it for the next column; one a row below, for the row above.
    expected[0, 0, 3, 5] = expected[0, 1, 2, 4] = np.nan
    w = replace(w, sparsity=Sparsity.of(weights))
    actual = run("fkw", w, data=[data], weights=[weights])
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_nan_weights_count() -> None:
    weights = patterned(weight_shape(SMALL))
    weights.reshape(-1)[np.flatnonzero(weights)[5]] = np.nan
    case, expected = sparse_case("fkw", SMALL, weights)
    np.testing.assert_allclose(oracles.run_all([case])[0], expected, rtol=1e-4, atol=1e-5)
    assert np.isnan(expected).any()


@pytest.mark.parametrize("target", TARGETS)
def test_uses_vectors(target: str) -> None:
    lines = fma_lines(assembly("fkw", _pruned(), TARGETS[target]))
    assert any("zmm" in line if target == "avx512" else ".4s" in line for line in lines)


def test_loads_what_taps_share_once() -> None:
    """Of a column of two taps, a tile of R rows reads R + 1 vectors for 2 R multiply-adds."""
    w = conv_workload(16, (30, 32), 32, 3, 1, 1)
    weights = np.zeros(weight_shape(w), "float32")
    weights[:, :, 0, 1] = weights[:, :, 1, 1] = 1
    w = replace(w, sparsity=Sparsity.of(weights))
    text = assembly("fkw", w, TARGETS["avx512"], rows=6, chunk=6, fold=1, strip=2, pieces=1)
    lines = [line for line in fma_lines(text) if "zmm" in line]
    # None of them reads memory itself: what it needs was loaded for two of them, but for the ends.
    from_memory = [line for line in lines if "rsp" not in line and "(" in line]
    assert len(lines) >= 12
    assert len(from_memory) <= len(lines) / 2 + 1


def test_refusals() -> None:
    algorithm = algorithms()["fkw"]

    def reason(w: ConvWorkload) -> str:
        return algorithm.supports(w, HOST).reason

    def pruned(w: ConvWorkload, density: float = 0.5) -> ConvWorkload:
        return replace(w, sparsity=Sparsity.of(sparse_weights(weight_shape(w), density)))

    assert reason(SMALL) == "hardly any weight is zero"
    assert reason(replace(_pruned(), dtype="float16")) == "dtype float16; only float32"
    assert reason(pruned(CASES["1d"])) == "1 spatial dimensions; only 2"
    assert reason(pruned(CASES["3d"])) == "3 spatial dimensions; only 2"
    assert reason(pruned(CASES["1x1"])) == "a 1x1 kernel; patterns are of 2 to 64 taps"
    many = pruned(conv_workload(40, (6, 9), 40, 3, 1, 1))
    assert reason(many) == f"kernels of {many.sparsity.patterns.distinct} patterns; at most 64"


def test_patterns_of_the_plan_must_be_the_layers() -> None:
    w, algorithm = _pruned(), algorithms()["fkw"]
    params = algorithm.default(w, HOST)
    assert algorithm.check(w, {**params, "patterns": "0,1"}, HOST).startswith("fkw.patterns = ")


def test_balanced_by_weights() -> None:
    """The last filters keep all their kernels, the others one each."""
    weights = np.zeros((32, 8, 3, 3), "float32")
    weights[:, 0, 0, 0] = 1
    weights[28:, :, 0, 0] = 1
    w = replace(conv_workload(8, (6, 6), 32, 3), sparsity=Sparsity.of(weights))
    algorithm = algorithms()["fkw"]
    params = {**algorithm.default(w, HOST), "pieces": 2}
    *_, shares = algorithm.pack(w, params, HOST, [weights])
    # 28 and 32 weights: the first share is that of the short filters.
    assert shares.tolist() == [[0, 0, 0], [28, 28, 28], [32, 60, 60]]


def test_fewer_kernels_cost_less() -> None:
    w, target, algorithm = (
        conv_workload(64, (28, 28), 64, 3, 1, 1), TARGETS["neon"], algorithms()["fkw"]
    )  # fmt: skip
    seconds = []
    for connectivity in (0.2, 0.9):
        weights = patterned(weight_shape(w), connectivity=connectivity)
        pruned = replace(w, sparsity=Sparsity.of(weights))
        seconds.append(algorithm.cost(pruned, algorithm.default(pruned, target), target))
    assert 2 * seconds[0] < seconds[1]


def _pruned() -> ConvWorkload:
    w = conv_workload(16, (32, 32), 32, 3, 1, 1)
    return replace(w, sparsity=Sparsity.of(patterned(weight_shape(w))))
