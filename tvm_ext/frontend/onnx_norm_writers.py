"""What normalisations are in ONNX; importing this file registers it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import dtype_of, shape_of
from tvm_ext.frontend.onnx_writer import GraphWriter, writes


@writes("nn.batch_norm")
def write_batch_norm(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...] | None:
    """Write a batch norm at inference; its statistics pass through."""
    attrs = call.attrs
    inputs = [graph.values(arg)[0] for arg in call.args]
    if int(attrs.axis) != 1 or attrs.training or not (attrs.scale and attrs.center):
        return None
    (result,) = graph.node("BatchNormalization", inputs, epsilon=float(attrs.epsilon))
    return (result, inputs[3], inputs[4])


@writes("nn.layer_norm")
def write_layer_norm(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...] | None:
    """Write a normalisation of the last axes."""
    axes = _trailing_axes(call)
    if axes is None:
        return None
    inputs = [graph.values(arg)[0] for arg in call.args]
    epsilon = float(call.attrs.epsilon)
    return graph.node("LayerNormalization", inputs, axis=axes[0], epsilon=epsilon)


@writes("nn.rms_norm")
def write_rms_norm(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...] | None:
    """Write a normalisation by the root mean square; its operator is of opset 23."""
    axes, dtype = _trailing_axes(call), dtype_of(call.args[0])
    if axes is None:
        return None
    (data,), (gamma,) = (graph.values(arg) for arg in call.args)
    # Squares of float16 numbers may be out of its range.
    (wide,) = graph.node("Cast", [data], to=onnx.TensorProto.FLOAT)
    (square,) = graph.node("Mul", [wide, wide])
    (mean,) = graph.node("ReduceMean", [square, graph.ints(axes)])
    epsilon = graph.array(np.asarray(call.attrs.epsilon, "float32"))
    (root,) = graph.node("Sqrt", graph.node("Add", [mean, epsilon]))
    normal = graph.node("Div", [wide, root])
    to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return graph.node("Mul", [*graph.node("Cast", normal, to=to), gamma])


def _trailing_axes(call: relax.Call) -> list[int] | None:
    """The axes that are normalised, if they are the last ones: in ONNX, no others can be."""
    rank = len(shape_of(call.args[0]))
    axes = sorted(int(axis) % rank for axis in call.attrs.axes)
    return axes if axes == list(range(axes[0], rank)) else None
