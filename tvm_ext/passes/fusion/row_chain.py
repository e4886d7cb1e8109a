"""Which pools, products with constants and norms one kernel goes through with a few rows."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

from tvm.ir import GenericConst

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import reduces_positions
from tvm_ext.passes.fusion.attention_chain import has_rows
from tvm_ext.passes.fusion.capabilities import NORMALIZATIONS
from tvm_ext.passes.fusion.kernel_parts import KernelForm
from tvm_ext.schedules.gemv import MOST_ROWS
from tvm_ext.schedules.window import covers

# Of the chains that `row_chain` computes.
_MOST_STAGES = 4
_ADAPTIVE = "relax.nn.adaptive_avg_pool"
_POOLS = ("relax.nn.max_pool", "relax.nn.avg_pool", _ADAPTIVE, "relax.mean")


def computes(expr: Any, before: Any) -> bool:
    """Whether an operator's kernel may compute the rows that another one makes for it."""
    if not has_constant_right(expr) and not (df.op_name(expr) in NORMALIZATIONS and has_rows(expr)):
        return False
    return has_constant_right(before) or is_global_pool(before)


def refusal(form: KernelForm, producer: KernelForm) -> str:
    """Why a kernel can't compute its rows itself; an empty string if it can."""
    assert form.anchor is not None and producer.anchor is not None
    stages, first = [form, producer], producer
    while first.producer is not None:
        first = first.producer
        stages.append(first)
    calls = [stage.anchor[1] for stage in stages if stage.anchor is not None]
    pairs = list(pairwise(calls))
    if any(s.prologue or s.pool for s in stages) or not all(computes(*pair) for pair in pairs):
        return "one of the two kernels has steps before it, a pool or a producer"
    if len(stages) == 2 and not has_constant_right(calls[0]) and has_constant_right(calls[1]):
        return ""  # a norm of any rows of one product
    if len(stages) > _MOST_STAGES:
        return f"{len(stages)} stages; at most {_MOST_STAGES}"
    for reader, made in pairs:
        shape, read = df.shape_of(made), _rows(df.shape_of(df.tensors(reader)[0]))
        rows, columns = shape[:2] if is_global_pool(made) else _rows(shape)
        if rows > MOST_ROWS:
            return f"{rows} rows; at most {MOST_ROWS}"
        if (rows, columns) != read:
            return f"{rows} rows of {columns} are read as {read[0]} of {read[1]}"
    if is_global_pool(calls[-1]) and first.operands:
        return "a step behind the pool reads a tensor"
    return ""


def has_constant_right(expr: Any) -> bool:
    """Whether an operator is a float32 product of rows with a constant matrix."""
    if df.op_name(expr) != "relax.matmul" or df.dtype_of(expr) != "float32":
        return False
    left, right = expr.args
    matrices = len(df.shape_of(left)) >= 2 and len(df.shape_of(right)) == 2
    return matrices and isinstance(right, GenericConst) and not isinstance(left, GenericConst)


def is_global_pool(expr: Any) -> bool:
    """Whether an operator pools all positions of each channel of a float32 map."""
    name, dtype = df.op_name(expr), df.dtype_of(expr)
    if not name.startswith(_POOLS) or dtype != "float32":
        return False
    shape, out = df.shape_of(expr.args[0]), df.shape_of(expr)
    if name == "relax.mean":
        return reduces_positions(expr) and len(out) == len(shape)
    if not str(expr.attrs.layout).startswith("NC") or any(n != 1 for n in out[2:]):
        return False
    if name.startswith(_ADAPTIVE):
        return True
    attrs, dims = expr.attrs, len(shape) - 2
    size, padding, dilation = (
        tuple(int(n) for n in values) for values in (attrs.pool_size, attrs.padding, attrs.dilation)
    )
    counted = "avg" in name and bool(attrs.count_include_pad)
    return covers(shape[2:], size, padding[:dims], padding[dims:], dilation, counted)


def _rows(shape: tuple[int, ...]) -> tuple[int, int]:
    return prod(shape[:-1]), shape[-1]
