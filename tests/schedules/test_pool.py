"""The pooling kernel against numpy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.workload import PoolWorkload

V = HOST.lanes
LAYOUTS = ((V, V), (0, 0))
# Pools of single windows, and those with operands, are stored as they are read.
TURNING = (0, V)


def workload(
    kind: str, shape: tuple[int, ...], kernel: Any, stride: Any = 1, pad: Any = 0,
    dilation: Any = 1, ceil: bool = False, include: bool = False, after: Any = None,
) -> PoolWorkload:  # fmt: skip
    dims = len(shape) - 2

    def every(x: Any) -> tuple[int, ...]:
        return (x,) * dims if isinstance(x, int) else tuple(x)

    kernel, stride, pad, dilation = every(kernel), every(stride), every(pad), every(dilation)
    after = pad if after is None else every(after)
    out = []
    for i in range(dims):
        span = shape[2 + i] + pad[i] + after[i] - dilation[i] * (kernel[i] - 1) - 1
        out.append((-(-span // stride[i]) if ceil else span // stride[i]) + 1)
    return PoolWorkload(
        kind, shape, kernel, stride, pad, after, dilation, (*shape[:2], *out), include
    )


CASES = {
    "3x3 stride 2": ((2, V, 13, 15), 3, 2, 1),
    "one channel more": ((1, V + 1, 9, V + 1), 2, 2, 0),
    "odd channels": ((1, V - 1, 7, V - 1), 3, 1, 1),
    "5x5 same": ((1, 3, 11, 4 * V + 1), 5, 1, 2),
    "long kernel": ((1, V, 16, 17), (13, 9), 1, (6, 4)),
    "dilated": ((1, V, 14, 14), 3, (1, 2), 2, 2),
    "oblong": ((2, 5, 10, 6), (1, 4), (2, 3), (0, 1)),
    "stride past the kernel": ((1, V, 11, 11), 1, 3, 0),
    "1d": ((2, 9, 33), 4, 2, 1),
    "3d": ((1, V + 2, 6, 7, 8), (2, 3, 2), 2, (1, 1, 0)),
    "global": ((2, V + 3, 7, 7), 7, 1, 0),
    "global in one vector": ((1, 4, 1, V - 1), (1, V - 1), 1, 0),
    "global 1d": ((1, V, 4 * V), 4 * V, 1, 0),
}


def test_squares_before_it() -> None:
    """Local response normalisation: an average over channels, which are rows, then a quotient."""
    square = Epilogue((Step("multiply", (("value", 0), ("value", 0))),), (), 1)
    cases = {
        "rows": workload("avg", (2, 1, 9, 2 * V + 3), (5, 1), 1, (2, 0), include=True),
        "windows": workload("avg", (1, V + 1, 8, 9), 3, 2, 1),
        "apart": workload("avg", (1, V, 8, 8), 2, 2),
        "largest": workload("max", (1, 3, 7, 9), 3, 1, 1),
    }
    rng = np.random.default_rng(3)
    for layout in LAYOUTS:
        made = [
            Case("pool", replace(w, prologue=square), layout=layout,
                 data=[rng.standard_normal(w.shape).astype("float32")])
            for w in cases.values()
        ]  # fmt: skip
        for name, case, got in zip(cases, made, run_all(made), strict=True):
            want = oracles.pool(case.workload, np.square(case.data[0].astype("float64")))
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6, err_msg=name)


def test_refuses_other_prologues() -> None:
    scaled = Epilogue(
        (Step("multiply", (("value", 0), ("operand", 0))),), (Operand((1, 4, 1, 1), "float32"),), 1
    )
    square = Epilogue((Step("multiply", (("value", 0), ("value", 0))),), (), 1)
    w = workload("avg", (1, 4, 6, 6), 3)
    supports = algorithms()["pool"].supports
    assert supports(replace(w, prologue=square), HOST)
    assert "more than the input" in supports(replace(w, prologue=scaled), HOST).reason
    whole = replace(workload("avg", (1, 4, 6, 6), 6), prologue=square)
    assert "one window" in supports(whole, HOST).reason


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
@pytest.mark.parametrize("kind", ("max", "avg"))
def test_matches_numpy(kind: str, layout: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    cases = []
    for arguments in CASES.values():
        w = workload(kind, *arguments)
        data = rng.standard_normal(w.shape).astype("float32")
        cases.append(Case("pool", w, data=[data], layout=layout))
    for name, case, got in zip(CASES, cases, run_all(cases), strict=True):
        want = oracles.pool(case.workload, case.data[0])
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", ("max", "avg"))
def test_planes_are_stored_in_blocks(kind: str) -> None:
    """In rows wider and narrower than a vector, in panels that overlap, with squares before it."""
    square = Epilogue((Step("multiply", (("value", 0), ("value", 0))),), (), 1)
    relu = Epilogue((Step("relu", (("value", 0),)),), (), 1)
    rng = np.random.default_rng(4)
    cases = []
    for name, arguments in CASES.items():
        if name.startswith("global"):
            continue
        w = workload(kind, *arguments)
        data = rng.standard_normal(w.shape).astype("float32")
        rows = {"rows": max(1, w.out_shape[2] - 2)} if len(w.shape) == 4 else {}
        for fields in ({}, {"prologue": square, "epilogue": relu}):
            whole = replace(w, **fields)
            cases.append(Case("pool", whole, data=[data], layout=TURNING, params=rows))
    assert len(cases) == 20
    for case, got in zip(cases, run_all(cases), strict=True):
        data = case.data[0].astype("float64")
        want = oracles.pool(case.workload, data if case.workload.prologue is None else data**2)
        if case.workload.epilogue.steps:
            want = np.maximum(want, 0)
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6, err_msg=str(case.workload))


def test_layouts() -> None:
    """Planes turn into blocks only where a pool has rows, and an epilogue without operands."""
    layouts = algorithms()["pool"].layouts
    assert layouts(workload("max", (1, V, 8, 8), 2, 2), HOST) == (*LAYOUTS, TURNING)
    assert layouts(workload("max", (1, V, 8, 8), 8), HOST) == LAYOUTS
    scaled = Epilogue(
        (Step("multiply", (("value", 0), ("operand", 0))),), (Operand((1, V, 1, 1), "float32"),), 1
    )
    w = replace(workload("max", (1, V, 8, 8), 2, 2), epilogue=scaled)
    assert layouts(w, HOST) == LAYOUTS


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
def test_ceil_and_the_divisor(layout: tuple[int, int]) -> None:
    data = np.random.default_rng(1).standard_normal((1, 6, 10, 10)).astype("float32")
    cases = [
        Case(
            "pool",
            workload(kind, data.shape, 3, 2, (1, 0), ceil=True, include=include, after=0),
            data=[data],
            layout=layout,
        )
        for kind in ("max", "avg")
        for include in (True, False)
    ]
    for case, got in zip(cases, run_all(cases), strict=True):
        np.testing.assert_allclose(got, oracles.pool(case.workload, data), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
@pytest.mark.parametrize("kernel,pad", ((3, 1), (6, 0)), ids=("window", "global"))
def test_nan_and_infinity(kernel: int, pad: int, layout: tuple[int, int]) -> None:
    w = workload("max", (1, V, 6, 6), kernel, 1, pad)
    data = np.random.default_rng(2).standard_normal(w.shape).astype("float32")
    data[0, 0, 2, 3], data[0, 1, 5, 5], data[0, 2] = np.nan, np.inf, -np.inf
    got = run("pool", w, data=[data], layout=layout)
    np.testing.assert_array_equal(got, oracles.pool(w, data).astype("float32"))


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
@pytest.mark.parametrize("rows,vectors,parallel", ((1, 1, True), (3, 8, True), (7, 3, False)))
def test_every_parameter_gives_the_same(
    rows: int, vectors: int, parallel: bool, layout: tuple[int, int]
) -> None:
    w = workload("avg", (1, V + 1, 13, 29), 3, 2, 1)
    data = np.random.default_rng(3).standard_normal(w.shape).astype("float32")
    got = run(
        "pool", w, data=[data], layout=layout,
        params={"rows": rows, "vectors": vectors, "parallel": parallel},
    )  # fmt: skip
    np.testing.assert_allclose(got, oracles.pool(w, data), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS, ids=("blocked", "plain"))
@pytest.mark.parametrize("kernel,shape", ((3, (2, 9, 6, 11)), (5, (1, 9, 5, 5)), (3, (1, 9, 12))))
def test_epilogue(kernel: int, shape: tuple[int, ...], layout: tuple[int, int]) -> None:
    w = workload("avg", shape, kernel)
    ones = (1,) * (len(shape) - 2)
    epilogue = Epilogue(
        (
            Step("add", (("value", 0), ("operand", 0))),
            Step("multiply", (("value", 1), ("operand", 1))),
        ),
        (Operand((1, 9, *ones), "float32"), Operand(w.out_shape, "float32")),
    )
    w = replace(w, epilogue=epilogue)
    rng = np.random.default_rng(4)
    data = rng.standard_normal(w.shape).astype("float32")
    x, y = (rng.standard_normal(o.shape).astype("float32") for o in epilogue.operands)
    got = run("pool", w, data=[data], operands=[x, y], layout=layout)
    np.testing.assert_allclose(got, (oracles.pool(w, data) + x) * y, rtol=4e-6, atol=2e-6)


def test_vector_registers_of_other_targets() -> None:
    w = workload("max", (1, 32, 28, 28), 3, 2, 1)
    assert "%zmm" in assembly("pool", w, AVX512, (16, 16))
    assert ".4s" in assembly("pool", w, NEON, (4, 4))


def test_refusals() -> None:
    algorithm, w = algorithms()["pool"], workload("max", (1, 8, 8, 8), 2, 2)
    assert "dtype float16" in algorithm.supports(replace(w, dtype="float16"), HOST).reason
    assert "kind 'lp'" in algorithm.supports(replace(w, kind="lp"), HOST).reason
    params = algorithm.default(w, HOST)
    assert "pool.vectors = 5" in algorithm.check(w, {**params, "vectors": 5}, HOST)
    assert "pool.rows = 5" in algorithm.check(w, {**params, "rows": 5}, HOST)
