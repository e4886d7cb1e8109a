"""`normalized_matmul`: products of normalised rows, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import (
    HOST,
    NEON,
    Case,
    run_all,
    same_on_any_threads,
)
from tests.schedules.normed_products import (
    TOLERANCE,
    assert_special_values_stay,
    assert_uses_vectors,
    case,
    modulation,
    norm_workload,
    product_workload,
    residual,
)
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.workload import NormalizeWorkload, Shape
from tvm_ext.sparsity import summarize

NAME = "normalized_matmul"
V = HOST.lanes


def _workload(
    shape: Shape, n: int, kind: str = "layer_norm", affine: bool = True, **fields: object
) -> MatmulWorkload:
    return product_workload(shape, n, producer=norm_workload(kind, shape, affine), **fields)


@pytest.mark.parametrize("kind", ("layer_norm", "rms_norm"))
def test_sizes_around_the_tile(kind: str) -> None:
    sizes = [(m, k, n) for m in (1, 3, 37) for k in (17, 2 * V) for n in (V - 1, 2 * V + 1)]
    sizes += [(1, 1, 1), (130, 95, 47)]
    cases = {size: case(NAME, _workload(size[:2], size[2], kind)) for size in sizes}
    cases["no weights"] = case(NAME, _workload((5, 19), 21, kind, affine=False))
    oracles.agree(cases, TOLERANCE)


def test_epilogues_of_both_and_leading_dimensions() -> None:
    shape, out = (2, 3, 33), (2, 3, 41)
    cases = {}
    for kind in ("layer_norm", "rms_norm"):
        w = _workload(shape, 41, kind, epilogue=residual(out))
        cases[kind] = case(NAME, w)
        assert w.producer is not None
        for steps in (modulation(shape), residual(shape)):
            norm = replace(w.producer, epilogue=steps)
            cases[kind, len(steps.operands)] = case(NAME, replace(w, producer=norm))
        activated = replace(w, epilogue=modulation(out))
        cases[kind, "tanh"] = case(NAME, activated)
    oracles.agree(cases, TOLERANCE)


def test_every_cut_gives_the_same() -> None:
    w, cases = _workload((37, 60), 5 * V + 3), {}
    for name, value in (("k_parts", 4), ("chunks", 3), ("pieces", 3)):
        cases[name] = case(NAME, w, **{name: value})
        cases[name, "4x1"] = case(NAME, w, **{name: value, "tile": 4, "blocks": 1})
    cases["both"] = case(NAME, w, chunks=2, pieces=2)
    oracles.agree(cases, TOLERANCE)
    same_on_any_threads([x for x, _ in cases.values()])


def test_transposed_weights() -> None:
    w = _workload((7, 20), 41)
    turned = StridedView.contiguous((41, 20)).permute((1, 0))
    plain, expected = case(NAME, w)
    right, *others = plain.weights
    stored = [np.ascontiguousarray(right.T), *others]
    w = replace(w, rhs=turned, rhs_shape=(41, 20))
    (got,) = run_all([Case(NAME, w, plain.data, stored)])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_special_values_stay_in_their_rows() -> None:
    assert_special_values_stay(NAME, _workload((9, 19), 21), (3, 5), (8, 18))


def test_zeros_of_the_weight_change_nothing() -> None:
    w = _workload((37, 64), 48)
    weight = np.where(np.random.default_rng(0).random((48, 64)) < 0.9, 0, 1).astype("float32")
    sparse = replace(w, sparsity=summarize(weight))
    assert sparse.sparsity is not None
    assert set(algorithms(sparse)) == {NAME}
    algorithm = algorithms()[NAME]
    assert algorithm.default(sparse, HOST) == algorithm.default(w, HOST)


def test_refusals_name_the_property() -> None:
    supports = algorithms()[NAME].supports
    w = _workload((8, 12), 8)
    assert supports(w, HOST)
    assert "float16" in supports(replace(w, dtype="float16"), HOST).reason
    assert "packed is False" in supports(replace(w, packed=False), HOST).reason
    part = StridedView.contiguous((8, 12)).slice(0, 2, 4)
    cut = MatmulWorkload.of((8, 12), (12, 8), lhs=part, packed=True, producer=w.producer)
    assert "a part of what its producer makes" in supports(cut, HOST).reason
    both = replace(w, producer=NormalizeWorkload("layer_norm", 1, 96, (8, 12)))
    assert "a norm of 96 columns in (8, 12)" in supports(both, HOST).reason
    unknown = replace(w, producer=norm_workload("l2", (8, 12)))
    assert "kind 'l2'" in supports(unknown, HOST).reason
    halves = MatmulWorkload.of(
        (8, 12), (6, 8), lhs=StridedView.contiguous((16, 6)), packed=True, producer=w.producer
    )
    assert "6 columns" in supports(halves, HOST).reason


def test_illegal_parameters_are_named() -> None:
    w, algorithm = _workload((8, 12), 8), algorithms()[NAME]
    params = algorithm.default(w, HOST)
    assert f"{NAME}.k_parts = 5" in algorithm.check(w, {**params, "k_parts": 5}, HOST)
    assert f"{NAME}.chunks = 9" in algorithm.check(w, {**params, "chunks": 9}, HOST)
    assert "no parameter 'rows'" in algorithm.check(w, {**params, "rows": 2}, HOST)
    del params["pieces"]
    assert "needs parameters ['pieces']" in algorithm.check(w, params, HOST)


def test_each_piece_costs_its_own_norm() -> None:
    w, algorithm, one = _workload((128, 256), 1024), algorithms()[NAME], replace(NEON, cores=1)
    params = {**algorithm.default(w, one), "chunks": 1}
    costs = [algorithm.cost(w, {**params, "pieces": pieces}, one) for pieces in (1, 2, 3)]
    assert w.producer is not None
    least = w.producer.flops / one.fma_peak
    assert costs[1] - costs[0] > least
    assert costs[2] - costs[1] == pytest.approx(costs[1] - costs[0])
    four = replace(NEON, cores=4)
    shared = algorithm.default(w, four)
    assert shared["chunks"] * shared["pieces"] % 4 == 0
    small = algorithm.default(_workload((4, 16), 16), four)
    assert (small["chunks"], small["pieces"]) == (1, 1)


@pytest.mark.parametrize("target", ("avx512", "avx2", "neon"))
def test_other_targets_use_their_vectors(target: str) -> None:
    w = _workload((64, 512), 512, epilogue=residual((64, 512)))
    assert_uses_vectors(NAME, w, target, more_than=20)
