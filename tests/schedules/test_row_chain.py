"""`row_chain`: a few rows through pools, products and norms, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import (
    HOST,
    NEON,
    Case,
    run,
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
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.flattened import reordered
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.workload import NormalizeWorkload, PoolWorkload

NAME = "row_chain"
V = HOST.lanes
RELU = Epilogue((Step("relu", (("value", 0),)),))


def _pool(
    rows: int, channels: int, spatial: tuple[int, ...] = (5, 7), kind: str = "avg", **fields: object
) -> PoolWorkload:
    ones, zeros = (1,) * len(spatial), (0,) * len(spatial)
    return PoolWorkload(
        kind, (rows, channels, *spatial), spatial, ones, zeros, zeros, ones,
        (rows, channels, *ones), **fields,
    )  # fmt: skip


def _excitation(rows: int, channels: int, n: int, **fields: object) -> MatmulWorkload:
    """A pool, a narrow product and one back to the channels."""
    pool = _pool(rows, channels, **fields)
    narrow = product_workload((rows, channels), n, producer=pool, epilogue=residual((rows, n)))
    return product_workload(
        (rows, n), channels, producer=narrow, epilogue=modulation((rows, channels))
    )


def _classifier(rows: int, channels: int, n: int, kind: str = "softmax") -> NormalizeWorkload:
    """A pool, a product and a norm."""
    product = product_workload((rows, channels), n, producer=_pool(rows, channels))
    return norm_workload(kind, (rows, n), "norm" in kind, producer=product)


def _layers(rows: int, *sizes: int) -> MatmulWorkload:
    """Products one behind the other."""
    w = None
    for k, n in pairwise(sizes):
        w = product_workload((rows, k), n, producer=w, epilogue=residual((rows, n)))
    assert w is not None
    return w


def _chains(rows: int, k: int, n: int) -> dict[str, MatmulWorkload | NormalizeWorkload]:
    """Every chain."""
    product = product_workload((rows, k), n, epilogue=residual((rows, n)))
    behind = _layers(rows, k, n, 21)
    return {
        "pool, product": product_workload((rows, k), n, producer=_pool(rows, k)),
        "pool, products": _excitation(rows, k, n),
        "pool, softmax": norm_workload("softmax", (rows, k), False, producer=_pool(rows, k)),
        "pool, product, softmax": _classifier(rows, k, n),
        "products": behind,
        "three products": _layers(rows, k, n, 21, 2 * V + 1),
        "product, log-softmax": norm_workload("log_softmax", (rows, n), False, producer=product),
        "product, layer norm": norm_workload("layer_norm", (rows, n), producer=product),
        "products, softmax": norm_workload("softmax", (rows, 21), False, producer=behind),
        "three products, softmax": norm_workload(
            "softmax", (rows, 5), False, producer=_layers(rows, k, n, 21, 5)
        ),
        "pool, products, layer norm": norm_workload(
            "layer_norm", (rows, k), producer=_excitation(rows, k, n)
        ),
    }


@pytest.mark.parametrize("rows", (1, 2, 3, 4))
def test_every_chain(rows: int) -> None:
    k, n = (V - 1, 2 * V + 3) if rows % 2 else (2 * V + 5, 3)
    cases = {name: case(NAME, w) for name, w in _chains(rows, k, n).items()}
    oracles.agree(cases, 10 * TOLERANCE)


def test_pools_of_channel_blocks() -> None:
    """The lanes past the last channel are pooled, too, and no row's result."""
    cases = {}
    for rows, channels in ((1, 3 * V), (3, V + 3), (2, 5)):
        for w in (_excitation(rows, channels, 9, kind="max"), _classifier(rows, channels, 11)):
            made, expected = case(NAME, w)
            blocked = replace(made, layout=(V, 0), missing=1e6)
            cases[rows, channels, type(w).__name__] = (blocked, expected)
    pool = _pool(2, V + 1, (3, 4, 5), epilogue=RELU)
    w = product_workload((2, V + 1), 7, producer=pool)
    cases["three dimensions"] = case(NAME, w)
    assert algorithms()[NAME].layouts(w, HOST) == ((V, 0), (0, 0))
    oracles.agree(cases, 10 * TOLERANCE)


def test_flattened_maps_of_blocks() -> None:
    """The data in blocks, the rows of the first product's weight moved."""
    shape, n, v = (2, 3 * V, 2, 3), 21, V
    k = prod(shape[1:])
    first = MatmulWorkload.of(
        shape, (k, n), lhs=StridedView.contiguous((2, k)), packed=True, out_shape=(2, n)
    )
    w = product_workload((2, n), 10, producer=first)
    made, expected = case(NAME, w)
    assert algorithms()[NAME].layouts(w, HOST) == ((0, 0), (v, 0))
    assert algorithms()[NAME].layouts(_layers(2, 8, 9, 10), HOST) == ((0, 0),)
    for block in (0, v):
        own, right = made.weights
        got = run(
            NAME, w, data=made.data, weights=[own, reordered(first, right, block)],
            layout=(block, 0),
        )  # fmt: skip
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)


def test_any_threads_make_the_same() -> None:
    """Stages that are shared out read what all threads made of the one before."""
    shared = {"pool_parallel": True, "pieces_1": 2}
    cases = {
        "excitation": case(NAME, _excitation(2, 6 * V, 3 * V), **shared, pieces_2=3, blocks_2=2),
        "one channel": case(NAME, _excitation(2, 6 * V, V + 1), **shared, blocks_1=1, pieces_2=5),
        "classifier": case(NAME, _classifier(1, 3 * V + 2, 9 * V + 1), **shared, blocks_1=1),
        "vectors": case(NAME, _classifier(4, V, 40), pool_vectors=8, pool_parallel=True),
        "last alone": case(NAME, _layers(3, 70, 5 * V, 4 * V), pieces_2=2, blocks_2=1),
        "more than the stack": case(NAME, _layers(4, 64, 40 * V, 30 * V), pieces_1=7, pieces_2=4),
    }
    oracles.agree(cases, 10 * TOLERANCE)
    same_on_any_threads([x for x, _ in cases.values()])


def test_strided_results_and_transposed_weights() -> None:
    out = StridedView.contiguous((3, 50)).slice(1, 5, 41)
    inner = MatmulWorkload.of(
        (3, 30), (20, 30), packed=True, rhs=StridedView.contiguous((20, 30)).permute((1, 0))
    )
    w = MatmulWorkload.of((3, 20), (20, 41), (3, 50), out=out, packed=True, producer=inner)
    data, first, second = (
        oracles.random(s, i) for i, s in enumerate(((3, 30), (20, 30), (20, 41)))
    )
    (got,) = run_all([Case(NAME, w, [data], [second, first])])
    want = data.astype("float64") @ first.T @ second
    np.testing.assert_allclose(got[:, 5:46], want, rtol=1e-4, atol=1e-4)
    assert np.isnan(got[:, :5]).all() and np.isnan(got[:, 46:]).all()


def test_special_values_stay_in_their_rows() -> None:
    assert_special_values_stay(NAME, _classifier(3, V + 1, 21), (0, 2, 1, 1), (2, V, 4, 6))


def test_refusals_name_the_property() -> None:
    def reason(w: MatmulWorkload | NormalizeWorkload) -> str:
        return algorithms()[NAME].supports(w, HOST).reason

    w = _excitation(2, 12, 8)
    assert not reason(w)
    assert reason(_layers(5, 8, 8, 8)) == "5 rows; at most 4"
    assert reason(_classifier(8, 8, 8)) == "8 rows; at most 4"
    assert "packed is False" in reason(replace(w, packed=False))
    assert "float16" in reason(replace(w, producer=replace(w.producer, dtype="float16")))
    windows = replace(_pool(2, 12, (4, 4)), kernel=(2, 4), out_shape=(2, 12, 3, 1))
    assert "a pool to (3, 1)" in reason(product_workload((2, 12), 8, producer=windows))
    bias = replace(RELU, operands=(Operand((1, 12, 1, 1), "float32"),))
    pool = _pool(2, 12, epilogue=bias)
    assert "reads a tensor" in reason(product_workload((2, 12), 8, producer=pool))
    pool = _pool(2, 12)
    assert reason(product_workload((4, 6), 8, producer=pool)) == (
        "a product reads 2 rows of 12 as 4 of 6"
    )
    assert "a norm of 6 columns" in reason(norm_workload("softmax", (4, 6), False, producer=pool))
    part = StridedView.contiguous((2, 24)).slice(1, 0, 12)
    read = MatmulWorkload.of((2, 24), (12, 8), lhs=part, packed=True, producer=pool)
    assert "left side is a part" in reason(read)


def test_parameters_are_those_of_the_stages() -> None:
    algorithm, w = algorithms()[NAME], _excitation(1, 64, 16)
    params = algorithm.default(w, HOST)
    assert list(params) == [
        "pool_vectors", "pool_parallel", "blocks_1", "pieces_1", "blocks_2", "pieces_2",
    ]  # fmt: skip
    assert f"{NAME}.blocks_2 = 99" in algorithm.check(w, {**params, "blocks_2": 99}, HOST)
    four = replace(NEON, cores=4)
    small, large = (
        algorithm.default(_layers(1, *n), four) for n in ((64, 64, 64), (64, 4096, 4096))
    )
    assert (small["pieces_1"], small["pieces_2"]) == (1, 1)
    assert large["pieces_2"] == 4


def test_stages_cost_as_much_as_alone_but_for_what_stays_in_cache() -> None:
    four = replace(NEON, cores=4)

    def seconds(name: str, w: object) -> float:
        return algorithms()[name].cost(w, algorithms()[name].default(w, four), four)

    w = _layers(1, 512, 4096, 1000)
    apart = seconds("gemv", w.producer) + seconds("gemv", replace(w, producer=None))
    assert seconds(NAME, w) == pytest.approx(apart - 0.5 * 8 * 4096 / four.memory_bandwidth)
    # What one task computes alone is better shared out; a stage can't change that.
    alone = norm_workload("softmax", (4, 1 << 16), False, producer=_pool(4, 1 << 16))
    apart = seconds("pool", alone.producer) + seconds("normalize", replace(alone, producer=None))
    assert seconds(NAME, alone) > apart


@pytest.mark.parametrize("target", ("avx512", "avx2", "neon"))
def test_other_targets_use_their_vectors(target: str) -> None:
    for w in (_excitation(1, 256, 64), _classifier(2, 256, 1000)):
        assert_uses_vectors(NAME, w, target, more_than=0, in_blocks=True)
