"""Multiply-adds of an ONNX model, and how many of them are with weights that aren't zero."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from onnx import numpy_helper

_LAYERS = {"Conv": (1,), "Gemm": (1,), "MatMul": (1,), "LSTM": (1, 2)}
"""The operators that are counted, and which of their inputs are weights."""


def count_macs(model: onnx.ModelProto) -> tuple[int, int]:
    """Count the multiply-adds of convolutions, products with constant weights and LSTMs.

    Parameters
    ----------
    model : onnx.ModelProto
        With static shapes; weights are initializers.

    Returns
    -------
    tuple[int, int]
        All of them, and those with weights that aren't zero; padding counts as input.
    """
    inferred = onnx.shape_inference.infer_shapes(model).graph
    shapes = {
        value.name: tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
        for value in (*inferred.input, *inferred.value_info, *inferred.output)
    }
    weights = {i.name: i for i in model.graph.initializer}
    every = remaining = 0
    for node in model.graph.node:
        for position in _LAYERS.get(node.op_type, ()):
            if node.input[position] not in weights:
                continue
            weight = numpy_helper.to_array(weights[node.input[position]])
            times = _uses(node, shapes)
            every += times * weight.size
            remaining += times * int(np.count_nonzero(weight))
    return every, remaining


def _uses(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]) -> int:
    """How often a node multiplies each weight: batch times positions, rows or time steps."""
    if node.op_type == "LSTM":
        return prod(shapes[node.input[0]][:2])
    out = shapes[node.output[0]]
    return out[0] * prod(out[2:]) if node.op_type == "Conv" else prod(out[:-1])
