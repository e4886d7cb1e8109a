"""What operators cost, to tell whether a replacement saves anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm import relax

from tvm_ext.dtypes import itemsize
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import concat_axis
from tvm_ext.passes.elementwise import scalar_name, to_step
from tvm_ext.passes.fusion.capabilities import takes_epilogue
from tvm_ext.schedules.epilogue import Epilogue

# Floating-point operations that a core makes in the time in which it moves a byte: 90 GFLOP/s
# over 12 GB/s on the machines that we have measured.
_FLOPS_A_BYTE = 8
# Channels in a block of the widest vectors, and numbers in a cache line: what starts at a multiple
# of it can be a view.
BLOCK = 16


@dataclass(frozen=True)
class Cost:
    """Floating-point operations, and bytes read and written by kernels of their own.

    `operators` tells apart what costs the same: views cost neither, but stand between others.
    """

    flops: int = 0
    bytes: int = 0
    operators: int = 0

    @property
    def weight(self) -> int:
        """Both in one number, in floating-point operations."""
        return self.flops + _FLOPS_A_BYTE * self.bytes

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.bytes + other.bytes,
            self.operators + other.operators,
        )

    def less_than(self, other: Cost) -> bool:
        """Whether it's cheaper; of equal weights, the one of fewer operators."""
        return (self.weight, self.operators) < (other.weight, other.operators)


def cost(inner: Mapping[Any, Any], root: Any) -> Cost:
    """What a group of operators costs when the elementwise ones among them are fused.

    With each other, and with a convolution, product or pool that only they follow.

    Parameters
    ----------
    inner : dict of Var to Call
        Operators whose results only the group reads.
    root : Expr
        The one whose result is read outside, or the variable of an inner one.

    Raises
    ------
    ModelError
        A shape is symbolic.
    """
    flops = moved = operators = 0
    calls = [(v, c) for v, c in [*inner.items(), (None, root)] if df.op_name(c)]
    # What elementwise operators read stays in registers for the others, and so does the result of
    # a kernel that goes on with them.
    read: set[Any] = {v for v, c in inner.items() if scalar_name(c) or takes_epilogue(c)}
    # What others read, views included, has to be written.
    written = {v for _, c in calls if not scalar_name(c) for v in df.free_vars(c)}
    written |= {None, root}
    for var, call in calls:
        name = df.op_name(call).removeprefix("relax.")
        operators += 1
        if df.is_view(call) or (name == "concat" and _in_place(call)):
            continue
        fused = bool(scalar_name(call))
        flops += prod(df.shape_of(call)) * _flops_an_element(call, name)
        for tensor in dict.fromkeys(df.tensors(call)):
            if fused and tensor in read:
                continue
            # Of a value that is cut, only the part is read.
            moved += nbytes(call if name == "strided_slice" else tensor)
            if fused:
                read.add(tensor)
        if var in written or not (fused or takes_epilogue(call)):
            moved += nbytes(call)
    return Cost(flops, moved, operators)


def _in_place(concat: relax.Call) -> bool:
    """Whether the parts of a concatenation are computed inside its result, if kernels make them."""
    if not isinstance(concat.args[0], relax.Tuple):
        return False
    axis, parts = concat_axis(concat), concat.args[0].fields
    extents = [df.shape_of(part)[axis] for part in parts]
    return prod(df.shape_of(concat)[:axis]) == 1 and all(n % BLOCK == 0 for n in extents[:-1])


def _flops_an_element(call: Any, name: str) -> int:
    if scalar_name(call):
        step = to_step(call, [("const", 0)] * len(call.args))
        return int(Epilogue((step,), (), 0).flops)
    if name == "matmul":
        return 2 * df.shape_of(call.args[0])[-1]
    if name.startswith("nn.conv") and not name.endswith("transpose"):
        return 2 * prod(df.shape_of(call.args[1])[1:])
    if name in ("mean", "sum", "max", "min", "prod"):
        return max(1, prod(df.shape_of(call.args[0])) // max(1, prod(df.shape_of(call))))
    return 1


def nbytes(expr: Any) -> int:
    """What it takes to read or write a value; nothing for a number."""
    constant = df.value_of(expr)
    if constant is not None and constant.size == 1:
        return 0  # part of the code
    return prod(df.shape_of(expr)) * itemsize(df.dtype_of(expr))
