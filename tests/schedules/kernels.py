"""Compile one kernel of an algorithm and run it on numpy arrays: the harness of these tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm

from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.layout import from_blocked, stored_shape, to_blocked
from tvm_ext.target import CpuTarget, resolve

HOST = resolve("native")
AVX512 = resolve("llvm -mcpu=skylake-avx512")
NEON = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


def parameters(
    name: str, workload: Any, target: CpuTarget = HOST, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The default parameters with `overrides`; they must be legal."""
    algorithm = algorithms()[name]
    support = algorithm.supports(workload, target)
    assert support, support.reason
    params = {**algorithm.default(workload, target), **(overrides or {})}
    problem = algorithm.check(workload, params, target)
    assert not problem, problem
    assert algorithm.cost(workload, params, target) > 0
    return params


def compiled(
    name: str,
    workload: Any,
    layout: tuple[int, int] = (0, 0),
    target: CpuTarget = HOST,
    overrides: Mapping[str, Any] | None = None,
) -> Any:
    """The compiled module of one kernel, its function called `main`."""
    params = parameters(name, workload, target, overrides)
    function = algorithms()[name].kernel(workload, params, target, layout)
    return tvm.compile(tvm.IRModule({"main": function}), target=target.tvm).mod


def assembly(
    name: str, workload: Any, target: CpuTarget, layout: tuple[int, int] = (0, 0), **overrides: Any
) -> str:
    """The kernel's assembly text."""
    return str(compiled(name, workload, layout, target, overrides).inspect_source("asm"))


def stored_operand(array: np.ndarray, block: int) -> np.ndarray:
    """An epilogue operand as a kernel with this output block reads it."""
    if block == 0 or array.shape[1] == 1:
        return np.ascontiguousarray(array)
    return to_blocked(array, block)


def run(
    name: str,
    workload: Any,
    data: Sequence[np.ndarray] = (),
    weights: Sequence[np.ndarray] = (),
    operands: Sequence[np.ndarray] = (),
    layout: tuple[int, int] = (0, 0),
    out_dtype: str = "float32",
    **overrides: Any,
) -> np.ndarray:
    """Run one kernel on logical arrays; returns the logical output.

    Blocked outputs are filled with NaN (or the largest integer) first, so that an element that the
    kernel forgets is seen, and the lanes past the last channel must come out finite.
    """
    algorithm = algorithms()[name]
    params = parameters(name, workload, HOST, overrides)
    module = compiled(name, workload, layout, HOST, overrides)
    block_in, block_out = layout
    arrays = [to_blocked(x, block_in) for x in data]
    arrays += algorithm.pack(workload, params, HOST, list(weights))
    arrays += [stored_operand(x, block_out) for x in operands]
    out = np.empty(stored_shape(workload.out_shape, block_out), out_dtype)
    out.fill(np.nan if out.dtype.kind == "f" else np.array(-1).astype(out.dtype))
    result = tvm.runtime.tensor(out)
    module["main"](*(tvm.runtime.tensor(x) for x in arrays), result)
    stored = result.numpy()
    if not block_out:
        return stored
    channels = workload.out_shape[1]
    missing = from_blocked(stored, stored.shape[1] * block_out)[:, channels:]
    assert np.isfinite(missing).all(), "lanes past the last channel must be finite"
    return from_blocked(stored, channels)


def time_ms(
    name: str,
    workload: Any,
    arrays: Sequence[np.ndarray],
    layout: tuple[int, int] = (0, 0),
    repeat: int = 15,
    out_dtype: str = "float32",
    **overrides: Any,
) -> float:
    """Least time of one call in milliseconds, on arrays in stored form."""
    module = compiled(name, workload, layout, HOST, overrides)
    out = tvm.runtime.empty(stored_shape(workload.out_shape, layout[1]), out_dtype)
    tensors = [tvm.runtime.tensor(x) for x in arrays]
    timer = module.time_evaluator("main", tvm.cpu(), number=1, repeat=repeat, min_repeat_ms=10)
    return 1e3 * float(timer(*tensors, out).min)
