"""Pools over the whole input against NumPy, with tails of every kind."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from tests.schedules.kernels import HOST, Case, run, run_all
from tests.schedules.oracles import finished, random, residual_epilogue
from tests.schedules.snippets import evaluate
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.pool_global import combine, identity
from tvm_ext.schedules.workload import PoolWorkload

V = HOST.lanes
LAYOUTS = {"blocked": (V, V), "plain": (0, 0)}
SHAPES = [
    (1, V, 7, 7), (2, V + 3, 5, 5), (1, 3, 1, 1), (1, 2, 1, V - 1), (1, 2, 1, V + 1),
    (1, V, 4 * V), (1, 5, 8 * V + 3), (1, 2, 3, 4, 5), (3, 2 * V, 14, 14),
]  # fmt: skip


def workload(kind: str, shape: tuple[int, ...]) -> PoolWorkload:
    dims = len(shape) - 2
    ones, zeros = (1,) * dims, (0,) * dims
    return PoolWorkload(kind, shape, shape[2:], ones, zeros, zeros, ones, (*shape[:2], *ones))


def reference(kind: str, data: np.ndarray) -> np.ndarray:
    axes = tuple(range(2, data.ndim))
    return getattr(data.astype("float64"), {"avg": "mean"}.get(kind, kind))(axes, keepdims=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_matches_numpy(kind: str, layout: str) -> None:
    """All shapes with the widest and the narrowest unrolling, on one thread and on all."""
    cases = []
    for i, shape in enumerate(SHAPES):
        for vectors, parallel in ((1, False), (8, True)):
            params = {"vectors": vectors, "parallel": parallel}
            data = [random(shape, i)]
            cases.append(
                Case("pool", workload(kind, shape), data, layout=LAYOUTS[layout], params=params)
            )
    for case, got in zip(cases, run_all(cases), strict=True):
        want = reference(kind, case.data[0])
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6, err_msg=str(case.workload))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_special_values_stay_in_their_channels(kind: str, layout: str) -> None:
    """Each special value stands where another part of the reduction meets it."""
    positions = 3 * V + 5
    data = random((1, V, positions), 9)
    data[0, 0, 0] = data[0, 1, V] = data[0, 2, positions - 1] = np.nan
    data[0, 3, 2], data[0, 4, positions - 1] = np.inf, -np.inf
    data[0, 5], data[0, 6] = -np.inf, -0.0
    got = run("pool", workload(kind, data.shape), data=[data], layout=LAYOUTS[layout])
    want = reference(kind, data)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
    if kind == "max":
        assert np.signbit(got[0, 6])


def test_an_epilogue_runs_on_the_result() -> None:
    cases, wanted = [], []
    for layout in LAYOUTS.values():
        w = workload("avg", (2, V + 1, 5, 7))
        epilogue = residual_epilogue(Operand((1, V + 1, 1, 1), "float32"), w.out_shape)
        w, data = replace(w, epilogue=epilogue), random(w.shape, 4)
        operands = [random(o.shape, 5 + i) for i, o in enumerate(epilogue.operands)]
        cases.append(Case("pool", w, [data], operands=operands, layout=layout))
        wanted.append(finished(reference("avg", data), w, operands))
    for got, want in zip(run_all(cases), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_combining_with_the_identity_changes_nothing(kind: str) -> None:
    w = workload(kind, (1, 1, 2, 2))
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -3.0], "float32")
    functions = {
        "left": lambda v: combine(w, identity(w), v),
        "right": lambda v: combine(w, v, identity(w)),
    }
    for got in evaluate(functions, x).values():
        np.testing.assert_array_equal(got, x)
    assert prod(w.out_shape) == 1
