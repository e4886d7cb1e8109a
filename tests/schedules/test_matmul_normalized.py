"""`matmul_normalized`: norms of products, against NumPy in float64."""

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

NAME = "matmul_normalized"
V = HOST.lanes


def _workload(
    shape: Shape, n: int, kind: str = "layer_norm", affine: bool = True, **fields: object
) -> NormalizeWorkload:
    """A norm of a product; the fields are the product's."""
    product = product_workload(shape, n, **fields)
    return norm_workload(kind, (*shape[:-1], n), affine, producer=product)


@pytest.mark.parametrize("kind", ("layer_norm", "rms_norm", "softmax", "log_softmax"))
def test_sizes_around_the_tile(kind: str) -> None:
    affine = "norm" in kind
    sizes = [(m, k, n) for m in (1, 3, 37) for k in (17, 2 * V) for n in (V - 1, 2 * V + 1)]
    sizes += [(1, 1, 3), (130, 95, 47)]
    cases = {size: case(NAME, _workload(size[:2], size[2], kind, affine)) for size in sizes}
    cases["no weights"] = case(NAME, _workload((5, 19), 21, kind, affine=False))
    # An error of a product is one of the exponent.
    oracles.agree(cases, TOLERANCE if affine else 10 * TOLERANCE)


def test_epilogues_of_both_and_leading_dimensions() -> None:
    shape, out = (2, 3, 33), (2, 3, 41)
    cases = {}
    for kind in ("layer_norm", "rms_norm", "softmax"):
        w = _workload(shape, 41, kind, "norm" in kind, epilogue=residual(out))
        cases[kind] = case(NAME, w)
        for steps in (modulation(out), residual(out)):
            cases[kind, len(steps.operands)] = case(NAME, replace(w, epilogue=steps))
        cases[kind, "tanh"] = case(
            NAME, _workload(shape, 41, kind, "norm" in kind, epilogue=modulation(out))
        )
    # The same rows under fewer dimensions.
    flat = replace(_workload(shape, 41), out_shape=(6, 41), epilogue=residual((6, 41)))
    cases["reshaped"] = case(NAME, flat)
    oracles.agree(cases, TOLERANCE)


def test_every_cut_gives_the_same() -> None:
    """Also where chunks overlap: both compute the rows that they share."""
    w, cases = _workload((37, 60), 5 * V + 3, epilogue=residual((37, 5 * V + 3))), {}
    for name, value in (("k_parts", 4), ("chunks", 3), ("chunks", 20)):
        cases[name, value] = case(NAME, w, **{name: value})
        cases[name, value, "4x1"] = case(NAME, w, **{name: value, "tile": 4, "blocks": 1})
    oracles.agree(cases, TOLERANCE)
    same_on_any_threads([x for x, _ in cases.values()])


def test_strided_rows_and_transposed_weights() -> None:
    part = StridedView.contiguous((7, 3, 20)).slice(1, 1, 1).reshape((7, 20))
    plain, expected = case(NAME, _workload((7, 20), 41))
    product = MatmulWorkload.of(
        (7, 3, 20), (41, 20), lhs=part, packed=True,
        rhs=StridedView.contiguous((41, 20)).permute((1, 0)),
    )  # fmt: skip
    data = np.full((7, 3, 20), np.nan, "float32")
    data[:, 1] = plain.data[0]
    *own, right = plain.weights
    w = replace(plain.workload, producer=product)
    (got,) = run_all([Case(NAME, w, [data], [*own, np.ascontiguousarray(right.T)])])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_special_values_stay_in_their_rows() -> None:
    assert_special_values_stay(NAME, _workload((9, 19), 21), (3, 5), (8, 18))


def test_zeros_of_the_weight_change_nothing() -> None:
    w = _workload((37, 64), 48)
    weight = np.where(np.random.default_rng(0).random((48, 64)) < 0.9, 0, 1).astype("float32")
    sparse = replace(w, producer=replace(w.producer, sparsity=summarize(weight)))
    assert sparse.producer.sparsity is not None
    assert NAME in algorithms(sparse)
    assert all(algorithm.storage == "dense" for algorithm in algorithms(sparse).values())
    algorithm = algorithms()[NAME]
    assert algorithm.default(sparse, HOST) == algorithm.default(w, HOST)


def test_refusals_name_the_property() -> None:
    supports = algorithms()[NAME].supports
    w = _workload((8, 12), 10)
    assert supports(w, HOST)
    half, computed = replace(w.producer, dtype="float16"), replace(w.producer, packed=False)
    assert "float16" in supports(replace(w, producer=half), HOST).reason
    assert "packed is False" in supports(replace(w, producer=computed), HOST).reason
    assert "float16" in supports(replace(w, dtype="float16"), HOST).reason
    wider = MatmulWorkload.of(
        (8, 12), (12, 10), (8, 20), packed=True,
        out=StridedView.contiguous((8, 20)).slice(1, 5, 10),
    )  # fmt: skip
    assert "stores a part" in supports(replace(w, producer=wider), HOST).reason
    both = replace(w, rows=1, columns=80)
    assert "a norm of 80 columns in (8, 10)" in supports(both, HOST).reason
    heads = MatmulWorkload.of(
        (8, 12), (12, 10), (16, 5), packed=True, out=StridedView.contiguous((8, 10))
    )
    assert "10 columns" in supports(replace(w, producer=heads), HOST).reason


def test_illegal_parameters_are_named() -> None:
    w, algorithm = _workload((8, 12), 8), algorithms()[NAME]
    params = algorithm.default(w, HOST)
    assert f"{NAME}.k_parts = 5" in algorithm.check(w, {**params, "k_parts": 5}, HOST)
    assert f"{NAME}.chunks = 9" in algorithm.check(w, {**params, "chunks": 9}, HOST)
    assert "no parameter 'pieces'" in algorithm.check(w, {**params, "pieces": 1}, HOST)


def test_rows_are_shared_by_all_cores() -> None:
    algorithm, four = algorithms()[NAME], replace(NEON, cores=4)
    assert algorithm.default(_workload((128, 256), 256), four)["chunks"] % 4 == 0
    assert algorithm.default(_workload((4, 16), 16), four)["chunks"] == 1


def test_one_row_of_many_columns_is_better_shared_by_columns() -> None:
    """One task computes all columns of a row; of a small product that costs nothing."""
    four = replace(NEON, cores=4)

    def gain(k: int, n: int) -> float:
        w = _workload((1, k), n, "softmax", affine=False)
        alone = replace(w, producer=None)
        total = 0.0
        for name, part in ((NAME, w), ("gemv", w.producer), ("normalize", alone)):
            algorithm = algorithms()[name]
            seconds = algorithm.cost(part, algorithm.default(part, four), four)
            total += -seconds if part is w else seconds
        return total

    assert gain(2048, 1000) < 0
    assert abs(gain(64, 16)) < 1e-6


@pytest.mark.parametrize("target", ("avx512", "avx2", "neon"))
def test_other_targets_use_their_vectors(target: str) -> None:
    w = _workload((64, 512), 512, epilogue=residual((64, 512)))
    assert_uses_vectors(NAME, w, target, more_than=20)
