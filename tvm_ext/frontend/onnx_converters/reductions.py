"""CumSum, and the reductions whose plain formulas fail on some types or on infinities."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tvm import relax

from tvm_ext.frontend.onnx_converters.values import (
    dtype_of,
    optional,
    required_constant,
    scalar,
    shape_of,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


@register_onnx_converter("CumSum")
def convert_cumsum(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert CumSum along an axis known at import; from the end is flipped twice."""
    data = inputs[0]
    axis = int(required_constant(inputs[1], "axis").item()) % len(shape_of(data))
    reverse = bool(attrs.get("reverse", 0))
    if reverse:
        data = bb.emit(relax.op.flip(data, axis))
    total = relax.op.cumsum(data, axis, exclusive=bool(attrs.get("exclusive", 0)))
    return relax.op.flip(bb.emit(total), axis) if reverse else total


def _reduction(compute: Callable[..., relax.Expr]) -> Callable[..., relax.Expr]:
    """Return a converter that calls ``compute(bb, data, axes, keepdims)``."""

    def convert(
        bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
    ) -> relax.Expr:
        data = inputs[0]
        axes = attrs.get("axes")
        if optional(inputs, 1) is not None:
            axes = required_constant(inputs[1], "axes").tolist()
        if not axes:
            if attrs.get("noop_with_empty_axes", 0):
                return data
            axes = list(range(len(shape_of(data))))
        return compute(bb, data, list(axes), bool(attrs.get("keepdims", 1)))

    return convert


def _extremum(operator: Callable[..., relax.Expr]) -> Callable[..., relax.Expr]:
    """ReduceMax or ReduceMin; from opset 20 on of booleans too."""

    def compute(
        bb: relax.BlockBuilder, data: relax.Expr, axes: list[int], keepdims: bool
    ) -> relax.Expr:
        if dtype_of(data) != "bool":
            return operator(data, axes, keepdims)
        numbers = bb.emit(relax.op.astype(data, "int8"))
        return relax.op.astype(bb.emit(operator(numbers, axes, keepdims)), "bool")

    return compute


def _mean(bb: relax.BlockBuilder, data: relax.Expr, axes: list[int], keepdims: bool) -> relax.Expr:
    """Means; those of integers are rounded towards zero."""
    if "int" not in dtype_of(data):
        return relax.op.mean(data, axes, keepdims)
    count = prod(shape_of(data)[axis] for axis in axes)
    total = bb.emit(relax.op.sum(bb.emit(relax.op.astype(data, "int64")), axes, keepdims))
    mean = bb.emit(relax.op.divide(total, scalar(count, total)))
    return relax.op.astype(mean, dtype_of(data))


def _in_wide_floats(compute: Callable[..., relax.Expr]) -> Callable[..., relax.Expr]:
    """Float32 for half precision, whose squares overflow, and float64 for integers."""

    def wrapped(
        bb: relax.BlockBuilder, data: relax.Expr, axes: list[int], keepdims: bool
    ) -> relax.Expr:
        dtype = dtype_of(data)
        wide = "float64" if "int" in dtype else "float32" if dtype == "float16" else dtype
        if wide == dtype:
            return compute(bb, data, axes, keepdims)
        data = bb.emit(relax.op.astype(data, wide))
        return relax.op.astype(bb.emit(compute(bb, data, axes, keepdims)), dtype)

    return wrapped


def _l2(bb: relax.BlockBuilder, data: relax.Expr, axes: list[int], keepdims: bool) -> relax.Expr:
    square = bb.emit(relax.op.multiply(data, data))
    return relax.op.sqrt(bb.emit(relax.op.sum(square, axes, keepdims)))


def _log_sum(
    bb: relax.BlockBuilder, data: relax.Expr, axes: list[int], keepdims: bool
) -> relax.Expr:
    return relax.op.log(bb.emit(relax.op.sum(data, axes, keepdims)))


def _log_sum_exp(
    bb: relax.BlockBuilder, data: relax.Expr, axes: list[int], keepdims: bool
) -> relax.Expr:
    """The largest number is taken out first, unless it's infinite: that would leave NaN."""
    top = bb.emit(relax.op.max(data, axes, keepdims=True))
    finite = bb.emit(relax.op.isfinite(top))
    top = bb.emit(relax.op.where(finite, top, scalar(0, data)))
    powers = bb.emit(relax.op.exp(bb.emit(relax.op.subtract(data, top))))
    log = bb.emit(relax.op.log(bb.emit(relax.op.sum(powers, axes, keepdims=True))))
    total = bb.emit(relax.op.add(log, top))
    return total if keepdims else relax.op.squeeze(total, axes)


for _name, _compute in {
    "ReduceMax": _extremum(relax.op.max),
    "ReduceMin": _extremum(relax.op.min),
    "ReduceMean": _mean,
    "ReduceL2": _in_wide_floats(_l2),
    "ReduceLogSum": _in_wide_floats(_log_sum),
    "ReduceLogSumExp": _in_wide_floats(_log_sum_exp),
}.items():
    register_onnx_converter(_name, converter=_reduction(_compute))
