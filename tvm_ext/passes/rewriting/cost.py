"""What operators cost, to tell whether a replacement saves anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm_ext.dtypes import itemsize
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import scalar_name, to_step
from tvm_ext.schedules.epilogue import Epilogue

# Floating-point operations that a core makes in the time in which it moves a byte: 90 GFLOP/s
# over 12 GB/s on the machines that we have measured.
_FLOPS_A_BYTE = 8
_VIEWS = frozenset({"reshape", "flatten", "squeeze", "expand_dims"})


@dataclass(frozen=True)
class Cost:
    """Floating-point operations, and bytes read and written by kernels of their own."""

    flops: int = 0
    bytes: int = 0

    @property
    def weight(self) -> int:
        """Both in one number, in floating-point operations."""
        return self.flops + _FLOPS_A_BYTE * self.bytes


def cost(inner: Mapping[Any, Any], root: Any) -> Cost:
    """What a group of operators costs when the elementwise ones among them are fused.

    Parameters
    ----------
    inner : dict of Var to Call
        Operators whose results only the group reads.
    root : Expr
        The one whose result is read outside; a variable costs nothing.

    Raises
    ------
    ModelError
        A shape is symbolic.
    """
    flops = moved = 0
    # What elementwise operators read stays in registers for the others.
    read: set[Any] = set()
    for var, call in [*inner.items(), (None, root)]:
        name = df.op_name(call).removeprefix("relax.")
        if not name or name in _VIEWS:
            continue
        fused = bool(scalar_name(call))
        flops += prod(df.shape_of(call)) * _flops_an_element(call, name)
        for tensor in dict.fromkeys(df.tensors(call)):
            if fused and (tensor in read or scalar_name(inner.get(tensor))):
                continue
            moved += _nbytes(tensor)
            if fused:
                read.add(tensor)
        if var is None or not fused:
            moved += _nbytes(call)
    return Cost(flops, moved)


def _flops_an_element(call: Any, name: str) -> int:
    if scalar_name(call):
        step = to_step(call, [("const", 0)] * len(call.args))
        return Epilogue((step,), (), 0).flops
    if name == "matmul":
        return 2 * df.shape_of(call.args[0])[-1]
    if name.startswith("nn.conv") and not name.endswith("transpose"):
        return 2 * prod(df.shape_of(call.args[1])[1:])
    if name in ("mean", "sum", "max", "min", "prod"):
        return max(1, prod(df.shape_of(call.args[0])) // max(1, prod(df.shape_of(call))))
    return 1


def _nbytes(expr: Any) -> int:
    constant = df.value_of(expr)
    if constant is not None and constant.size == 1:
        return 0  # part of the code
    return prod(df.shape_of(expr)) * itemsize(df.dtype_of(expr))
