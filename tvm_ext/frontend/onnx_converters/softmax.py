"""Softmax and LogSoftmax along one axis; before opset 13, over all axes from one on."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import shape_of
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


def _converter(operator: Callable[..., relax.Expr]) -> Callable[..., relax.Expr]:
    def convert(
        bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
    ) -> relax.Expr:
        data = inputs[0]
        shape = shape_of(data)
        axis = attrs.get("axis", -1 if node.opset >= 13 else 1)
        if not -len(shape) <= axis <= len(shape) - (node.opset >= 13):
            raise ModelError(f"axis is {axis}; the input has {len(shape)} dimensions")
        axis = axis + len(shape) if axis < 0 else axis
        if node.opset >= 13:
            return operator(data, axis=axis)
        # The old meaning: the axes from this one on are one long row. Where only one of them has
        # more than one element, that is the new meaning along that axis.
        long_axes = [i for i in range(axis, len(shape)) if shape[i] != 1]
        if len(long_axes) <= 1 and axis < len(shape):
            return operator(data, axis=long_axes[0] if long_axes else axis)
        rows = bb.emit(relax.op.reshape(data, (prod(shape[:axis]), prod(shape[axis:]))))
        return relax.op.reshape(bb.emit(operator(rows, axis=1)), shape)

    return convert


register_onnx_converter("Softmax", converter=_converter(relax.op.nn.softmax))
register_onnx_converter("LogSoftmax", converter=_converter(relax.op.nn.log_softmax))
