"""Reductions that TVM's converters lack, or return in another dtype or by sorting."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import const, shape_of
from tvm_ext.frontend.torch_registry import Call, Converter, converts

aten = torch.ops.aten


def _extremum(operator: Callable[..., relax.Expr]) -> Converter:
    return lambda call: operator(call["self"], call["dim"] or None, keepdims=call["keepdim"])


converts(aten.amax.default)(_extremum(relax.op.max))
converts(aten.amin.default)(_extremum(relax.op.min))


def _extremum_and_index(
    operator: Callable[..., relax.Expr], position: Callable[..., relax.Expr]
) -> Callable[[Call], Any]:
    def convert(call: Call) -> list[relax.Expr]:
        data, axis, keep = call["self"], call["dim"], call["keepdim"]
        return [operator(data, axis, keepdims=keep), position(data, axis, keepdims=keep)]

    return convert


converts(aten.max.dim)(_extremum_and_index(relax.op.max, relax.op.argmax))
converts(aten.min.dim)(_extremum_and_index(relax.op.min, relax.op.argmin))


@converts(aten.any.default, aten.any.dim, aten.any.dims)
def convert_any(call: Call) -> relax.Expr:
    """Convert "is any element not zero"."""
    flags = call.emit(relax.op.astype, call.cast("self", "bool"), "int8")
    axes, keep = call.args.get("dim"), call.args.get("keepdim", False)
    best = call.emit(relax.op.max, flags, None if axes == [] else axes, keepdims=keep)
    return relax.op.astype(best, "bool")


@converts(aten.prod.dim_int)
def convert_prod(call: Call) -> relax.Expr:
    """Convert a product along one axis."""
    return relax.op.prod(call.cast("self"), call["dim"], keepdims=call["keepdim"])


@converts(aten.var_mean.correction)
def convert_var_mean(call: Call) -> list[relax.Expr]:
    """Convert variance and mean; `correction` is taken from the number of elements."""
    data, axes, keep = call["self"], call["dim"] or None, call["keepdim"]
    mean = call.emit(relax.op.mean, data, axes, keepdims=True)
    centred = call.emit(relax.op.subtract, data, mean)
    square = call.emit(relax.op.multiply, centred, centred)
    total = call.emit(relax.op.sum, square, axes, keepdims=keep)
    correction = 1 if call["correction"] is None else call["correction"]
    count = prod(shape_of(data)) // prod(call.shape) - correction
    return [
        relax.op.multiply(total, const(1 / count if count > 0 else float("nan"), call.dtype)),
        relax.op.mean(data, axes, keepdims=keep),
    ]
