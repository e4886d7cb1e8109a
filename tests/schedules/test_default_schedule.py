"""The default schedule changes how a PrimFunc runs, and never what it computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script.ir_builder import tirx as T

from tests.schedules.kernels import HOST
from tvm_ext.schedules import emit
from tvm_ext.schedules.default_schedule import schedule_prim_func

V = HOST.lanes
op = relax.op


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def legalised(call: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """The PrimFunc to which TVM legalises one operator."""
    params = [
        relax.Var(f"x{i}", relax.TensorType(a.shape, str(a.dtype))) for i, a in enumerate(arrays)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(call(*params)))
    mod = relax.transform.LegalizeOps()(builder.get())
    (function,) = [f for f in mod.functions.values() if not isinstance(f, relax.Function)]
    return function


def run(function: Any, want: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    module = tvm.compile(
        tvm.IRModule({"main": function.with_attr("global_symbol", "main")}), target=HOST.tvm
    ).mod
    out = tvm.runtime.tensor(np.zeros(want.shape, want.dtype))
    module["main"](*(tvm.runtime.tensor(a) for a in arrays), out)
    return out.numpy()


# The operator, its inputs and what numpy makes of them.
CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray], np.ndarray]] = {
    "sum over whole vectors": (
        lambda x: op.sum(x, axis=[0]), [floats(7, 4 * V)], floats(7, 4 * V).sum(0),
    ),
    "sum that leaves a tail": (
        lambda x: op.sum(x, axis=[1]), [floats(5, 9, V + 3)], floats(5, 9, V + 3).sum(1),
    ),
    "sum to one number": (lambda x: op.sum(x), [floats(6, 7)], floats(6, 7).sum(keepdims=False)),
    "large maximum": (
        lambda x: op.max(x, axis=[1]), [floats(64, 65, 33)], floats(64, 65, 33).max(1),
    ),
    "gather": (
        lambda x, i: op.take(x, i, axis=1),
        [floats(3, 10, V), np.array([9, 0, 4], "int64")], floats(3, 10, V)[:, [9, 0, 4]],
    ),
    "padding": (
        lambda x: op.nn.pad(x, [0, 0, 2, 1], "constant", 3.0),
        [floats(5, 2 * V)], np.pad(floats(5, 2 * V), [(0, 0), (2, 1)], constant_values=3.0),
    ),
    "variance, of several blocks": (
        lambda x: op.variance(x, axis=[1]), [floats(30, 50)], floats(30, 50).var(1),
    ),
    "position of the maximum, a reduction of pairs": (
        lambda x: op.argmax(x, axis=1), [floats(9, 41)], floats(9, 41).argmax(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_stay(name: str) -> None:
    call, arrays, want = CASES[name]
    function = schedule_prim_func(legalised(call, *arrays), HOST)
    np.testing.assert_allclose(run(function, want, *arrays), want, rtol=2e-5, atol=1e-5)


def test_large_loops_are_parallel_and_whole_rows_vectorised() -> None:
    two = replace(HOST, cores=2)

    def text(*shape: int, cores: Any = two) -> str:
        call, data = (lambda x: op.nn.pad(x, [1, 1, 0, 0])), floats(*shape)
        return str(schedule_prim_func(legalised(call, data), cores))

    assert "T.parallel" in text(256, 128)
    assert "T.parallel" not in text(8, 128)
    assert "T.parallel" not in text(256, 128, cores=replace(HOST, cores=1))
    assert "T.vectorized" in text(8, 16 * V)
    assert "T.vectorized" not in text(8, 16 * V + 1)


def test_functions_without_blocks_come_back_as_they_are() -> None:
    def body() -> None:
        out = emit.argument("out", (4,))
        with emit.loop(4) as i:
            T.buffer_store(out, 1.0, [i])

    function = emit.build(body)
    assert schedule_prim_func(function, HOST).same_as(function)
