"""Compile kernels of algorithms and run them on numpy arrays: the harness of these tests.

Several cases are compiled as one module, which costs little more than one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm

from tvm_ext import threads
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.layout import from_blocked, stored_shape, to_blocked
from tvm_ext.target import CpuTarget, resolve

HOST = resolve("native")
AVX512 = resolve("llvm -mcpu=skylake-avx512")
NEON = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
TARGETS = {"avx512": AVX512, "neon": NEON}


@dataclass(frozen=True)
class Case:
    """One kernel and its arguments, all arrays in their logical layout."""

    algorithm: str
    workload: Any
    data: Sequence[np.ndarray] = ()
    weights: Sequence[np.ndarray] = ()
    operands: Sequence[np.ndarray] = ()
    layout: tuple[int, int] = (0, 0)
    out_dtype: str = "float32"
    params: Mapping[str, Any] = field(default_factory=dict)
    missing: float = 0.0  # what the lanes past the last channel of blocked inputs hold


def parameters(
    name: str, workload: Any, target: CpuTarget, overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """The default parameters with `overrides`; they must be legal."""
    algorithm = algorithms()[name]
    support = algorithm.supports(workload, target)
    assert support, support.reason
    params = {**algorithm.default(workload, target), **overrides}
    problem = algorithm.check(workload, params, target)
    assert not problem, problem
    assert algorithm.cost(workload, params, target) > 0
    return params


def compiled(cases: Sequence[Case], target: CpuTarget = HOST) -> Any:
    """One module with the functions `kernel0`, `kernel1`, ..."""
    functions = {}
    for i, case in enumerate(cases):
        params = parameters(case.algorithm, case.workload, target, case.params)
        algorithm = algorithms()[case.algorithm]
        function = algorithm.kernel(case.workload, params, target, case.layout)
        functions[f"kernel{i}"] = function.with_attr("global_symbol", f"kernel{i}")
    return tvm.compile(tvm.IRModule(functions), target=target.tvm).mod


def assembly(
    name: str, workload: Any, target: CpuTarget, layout: tuple[int, int] = (0, 0), **params: Any
) -> str:
    """The assembly text of one kernel."""
    case = Case(name, workload, layout=layout, params=params)
    return str(compiled([case], target).inspect_source("asm"))


def fma_lines(text: str) -> list[str]:
    """The instructions of an assembly text that multiply and add."""
    return [line for line in text.splitlines() if "vfmadd" in line or "fmla" in line]


def stored_operand(array: np.ndarray, block: int) -> np.ndarray:
    """An epilogue operand as a kernel with this output block reads it."""
    if block == 0 or array.shape[1] == 1:
        return np.asarray(array, order="C")
    return to_blocked(array, block)


def _stored_input(array: np.ndarray, block: int, missing: float) -> np.ndarray:
    if block == 0:
        return to_blocked(array, 0)
    lanes = -array.shape[1] % block
    spare = np.full((array.shape[0], lanes, *array.shape[2:]), missing, array.dtype)
    return to_blocked(np.concatenate([array, spare], axis=1), block)


def run_all(cases: Sequence[Case], target: CpuTarget = HOST) -> list[np.ndarray]:
    """The logical output of each case.

    Outputs are filled with NaN (or the largest integer) first, so that an element that the kernel
    forgets is seen, and the lanes past the last channel must come out finite.
    """
    module = compiled(cases, target)
    return [_call(module[f"kernel{i}"], case, target) for i, case in enumerate(cases)]


def run(name: str, workload: Any, **fields: Any) -> np.ndarray:
    """The logical output of one case."""
    return run_all([Case(name, workload, **fields)])[0]


def same_on_any_threads(cases: Sequence[Case], target: CpuTarget = HOST) -> None:
    """Assert that one thread and all of them make the same bits."""
    shared = run_all(cases, target)
    threads.use(1)
    try:
        alone = run_all(cases, target)
    finally:
        threads.use(threads.default_threads())
    for x, y in zip(shared, alone, strict=True):
        np.testing.assert_array_equal(x, y)


def _call(function: Any, case: Case, target: CpuTarget) -> np.ndarray:
    algorithm = algorithms()[case.algorithm]
    params = parameters(case.algorithm, case.workload, target, case.params)
    block_in, block_out = case.layout
    arrays = [_stored_input(x, block_in, case.missing) for x in case.data]
    arrays += algorithm.pack(case.workload, params, target, list(case.weights))
    arrays += [stored_operand(x, block_out) for x in case.operands]
    out = np.empty(stored_shape(case.workload.out_shape, block_out), case.out_dtype)
    out.fill(np.nan if out.dtype.kind == "f" else np.array(-1).astype(out.dtype))
    result = tvm.runtime.tensor(out)
    function(*(tvm.runtime.tensor(x) for x in arrays), result)
    stored = result.numpy()
    if not block_out:
        return stored
    channels = case.workload.out_shape[1]
    missing = from_blocked(stored, stored.shape[1] * block_out)[:, channels:]
    assert np.isfinite(missing).all(), "lanes past the last channel must be finite"
    return from_blocked(stored, channels)
