"""Softmax and the norms against numpy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.workload import NormalizeWorkload

V = HOST.lanes
KINDS = ("softmax", "log_softmax", "layer_norm", "rms_norm")
COLUMNS = (1, 3, V - 1, V, V + 1, 4 * V - 1, 4 * V, 4 * V + 1, 1000)


def reference(w: NormalizeWorkload, data: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    x = data.reshape(w.rows, w.columns).astype("float64")
    if "softmax" in w.kind:
        with np.errstate(invalid="ignore"):
            x = x - x.max(1, keepdims=True)
        x = x - np.log(np.exp(x).sum(1, keepdims=True))
        y = np.exp(x) if w.kind == "softmax" else x
    else:
        mean = x.mean(1, keepdims=True) if w.kind == "layer_norm" else 0.0
        y = (x - mean) / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + w.epsilon)
    rest = list(weights)
    y = y * rest.pop(0) if w.scale else y
    y = y + rest.pop(0) if w.shift else y
    return y.reshape(w.out_shape)


@pytest.mark.parametrize("kind", KINDS)
def test_matches_numpy(kind: str) -> None:
    rng = np.random.default_rng(0)
    cases = []
    for n in COLUMNS:
        affine = "norm" in kind
        w = NormalizeWorkload(kind, 3, n, (3, n), 1e-5, affine, kind == "layer_norm")
        data = (3 * rng.standard_normal((3, n)) + 2).astype("float32")
        weights = [rng.standard_normal(n).astype("float32") for on in (w.scale, w.shift) if on]
        cases.append(Case("normalize", w, data=[data], weights=weights))
    for case, got in zip(cases, run_all(cases), strict=True):
        want = reference(case.workload, case.data[0], *case.weights)
        np.testing.assert_allclose(got, want, rtol=5e-6, atol=5e-6, err_msg=str(case.workload))


@pytest.mark.parametrize("kind", ("softmax", "log_softmax"))
def test_large_and_infinite_values(kind: str) -> None:
    n = 2 * V + 3
    w = NormalizeWorkload(kind, 4, n, (4, n))
    data = np.random.default_rng(1).standard_normal((4, n)).astype("float32")
    data[0] += 1e4
    data[1] -= 1e4
    data[2, 3:9] = -np.inf
    data[3, -1] = np.nan
    got = run("normalize", w, data=[data])
    np.testing.assert_allclose(got, reference(w, data), rtol=5e-6, atol=5e-6)
    assert np.isnan(got[3]).all()


@pytest.mark.parametrize("rows,vectors,parallel", ((1, 1, True), (3, 8, True), (7, 2, False)))
def test_every_parameter_gives_the_same(rows: int, vectors: int, parallel: bool) -> None:
    w = NormalizeWorkload("softmax", 7, 67, (7, 67))
    data = np.random.default_rng(2).standard_normal((7, 67)).astype("float32")
    params = {"rows": rows, "vectors": vectors, "parallel": parallel}
    got = run("normalize", w, data=[data], params=params)
    np.testing.assert_allclose(got, reference(w, data), rtol=5e-6, atol=5e-6)


@pytest.mark.parametrize(
    "columns,out_shape", ((V + 3, (2, 5, V + 3)), (6 * V, (4, 6, V)), (9, (2, 9, 1))), ids=str
)
def test_epilogue(columns: int, out_shape: tuple[int, ...]) -> None:
    """Also where a row of the norm is several trailing dimensions of the output."""
    shapes: list[Any] = [(1, *out_shape[1:]), out_shape]
    epilogue = Epilogue(
        (
            Step("multiply", (("value", 0), ("operand", 0))),
            Step("add", (("value", 1), ("operand", 1))),
        ),
        tuple(Operand(s, "float32") for s in shapes),
    )
    rows = int(np.prod(out_shape)) // columns
    w = NormalizeWorkload("layer_norm", rows, columns, out_shape, 1e-5, True, True)
    w = replace(w, epilogue=epilogue)
    rng = np.random.default_rng(3)
    data = rng.standard_normal(out_shape).astype("float32")
    weights = [rng.standard_normal(columns).astype("float32") for _ in range(2)]
    x, y = (rng.standard_normal(s).astype("float32") for s in shapes)
    got = run("normalize", w, data=[data], weights=weights, operands=[x, y])
    np.testing.assert_allclose(got, reference(w, data, *weights) * x + y, rtol=5e-6, atol=1e-5)


def test_vector_registers_of_other_targets() -> None:
    w = NormalizeWorkload("softmax", 64, 197, (64, 197))
    assert "%zmm" in assembly("normalize", w, AVX512)
    assert ".4s" in assembly("normalize", w, NEON)


def test_refusals() -> None:
    algorithm = algorithms()["normalize"]
    w = NormalizeWorkload("softmax", 4, 9, (4, 9))
    assert "kind 'l2'" in algorithm.supports(replace(w, kind="l2"), HOST).reason
    params = algorithm.default(w, HOST)
    assert "normalize.rows = 5" in algorithm.check(w, {**params, "rows": 5}, HOST)
