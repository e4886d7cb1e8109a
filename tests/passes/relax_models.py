"""Small Relax modules for the passes' tests, and TVM's own evaluation of them as the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df


def module(
    inputs: Mapping[str, tuple[int, ...]],
    body: Callable[..., Any],
    dtype: str = "float32",
) -> tvm.IRModule:
    """A module whose `main` computes `body(emit, *inputs)`; `emit` binds an expression."""
    params = [relax.Var(n, relax.TensorType(list(s), dtype)) for n, s in inputs.items()]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            output = builder.emit_output(body(builder.emit, *params))
        builder.emit_func_output(output)
    return builder.get()


def run(mod: tvm.IRModule, *inputs: np.ndarray) -> np.ndarray:
    """Run `main` through TVM's own default pipeline."""
    executable = tvm.compile(mod, target="llvm")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    return machine["main"](*[tvm.runtime.tensor(x) for x in inputs]).numpy()


def enlarged(emit: Callable[[Any], Any], x: Any, *factors: int) -> Any:
    """`x` of (N, C, H, W) with each element repeated along the last two dimensions."""
    size = tuple(n * f for n, f in zip(df.shape_of(x)[2:], factors, strict=True))
    call = relax.op.image.resize2d(
        x, size, method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )  # fmt: skip
    return emit(call)


def ops(mod: tvm.IRModule) -> list[str]:
    """The operators of `main`, in order, without the `relax.` prefix."""
    names = [df.op_name(e).removeprefix("relax.") for _, e in df.bindings(mod["main"])]
    return [n for n in names if n]


def array(seed: int, *shape: int) -> np.ndarray:
    """Seeded standard normal float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def const(value: np.ndarray) -> Any:
    """A Relax constant."""
    return relax.const(value, str(value.dtype))
