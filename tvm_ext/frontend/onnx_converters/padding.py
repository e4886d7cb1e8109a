"""Pad in every mode, with pads known at import; negative pads crop."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import (
    constant,
    optional,
    required_constant,
    shape_of,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter

_MODES = ("constant", "reflect", "edge", "wrap")


@register_onnx_converter("Pad")
def convert_pad(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Pad: ``relax.nn.pad`` for constants, a gather of each padded axis otherwise."""
    data = inputs[0]
    shape = shape_of(data)
    mode = attrs.get("mode", "constant")
    if mode not in _MODES:
        raise ModelError(f"mode is {mode!r}; it must be one of {', '.join(_MODES)}")
    if node.opset < 11:
        pads = np.asarray(attrs["pads"] if "pads" in attrs else attrs["paddings"])
        value = attrs.get("value", 0.0)
    else:
        pads = required_constant(inputs[1], "pads")
        filler = optional(inputs, 2)
        value = 0 if filler is None else required_constant(filler, "constant_value").item()
    given = constant(optional(inputs, 3))
    axes = range(len(shape)) if given is None else [int(a) % len(shape) for a in given]
    begins, ends = [0] * len(shape), [0] * len(shape)
    for i, axis in enumerate(axes):
        begins[axis], ends[axis] = int(pads[i]), int(pads[len(pads) // 2 + i])

    if mode == "constant":
        widths = [max(p, 0) for pair in zip(begins, ends, strict=True) for p in pair]
        if any(widths):
            data = bb.emit(relax.op.nn.pad(data, widths, "constant", value))
        return _crop(data, begins, ends)
    for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if begin or end:
            indices = _padded_indices(shape[axis], begin, end, mode)
            data = bb.emit(relax.op.take(data, relax.const(indices, "int64"), axis, mode="clip"))
    return data


def _crop(data: relax.Expr, begins: list[int], ends: list[int]) -> relax.Expr:
    """Apply the negative pads."""
    axes = [i for i in range(len(begins)) if begins[i] < 0 or ends[i] < 0]
    if not axes:
        return data
    shape = shape_of(data)
    return relax.op.strided_slice(
        data,
        axes,
        [max(-begins[i], 0) for i in axes],
        [shape[i] - max(-ends[i], 0) for i in axes],
    )


def _padded_indices(size: int, begin: int, end: int, mode: str) -> np.ndarray:
    """Return, for each position after padding, the position that it copies."""
    positions = np.arange(-begin, size + end)
    if mode == "edge":
        return positions.clip(0, size - 1)
    if mode == "wrap":
        return positions % size
    # Reflection has the period there and back without repeating either edge.
    period = max(2 * (size - 1), 1)
    folded = positions % period
    return np.where(folded < size, folded, period - folded)
