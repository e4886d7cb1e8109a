"""CumSum, and the two reductions that ONNX defines on booleans too."""

from __future__ import annotations

from collections.abc import Callable

from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import (
    constant,
    dtype_of,
    optional,
    required_constant,
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


def _boolean_reduction(operator: Callable[..., relax.Expr]) -> Callable[..., relax.Expr]:
    """Return a converter of ReduceMax/ReduceMin (from opset 13 on, booleans too) for any dtype."""

    def convert(
        bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
    ) -> relax.Expr:
        data = inputs[0]
        axes = attrs.get("axes")
        if optional(inputs, 1) is not None:
            given = constant(inputs[1])
            if given is None:
                raise ModelError("the input 'axes' must be constant")
            axes = [int(a) for a in given]
        if not axes:
            if attrs.get("noop_with_empty_axes", 0):
                return data
            axes = list(range(len(shape_of(data))))
        keepdims = bool(attrs.get("keepdims", 1))
        if dtype_of(data) != "bool":
            return operator(data, list(axes), keepdims)
        numbers = bb.emit(relax.op.astype(data, "int8"))
        reduced = bb.emit(operator(numbers, list(axes), keepdims))
        return relax.op.astype(reduced, "bool")

    return convert


register_onnx_converter("ReduceMax", converter=_boolean_reduction(relax.op.max))
register_onnx_converter("ReduceMin", converter=_boolean_reduction(relax.op.min))
