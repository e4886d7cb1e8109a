"""Small modules with every kind of layer that can be pruned, and a torch model of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import tvm
from onnx import TensorProto, helper, numpy_helper
from relax_models import array, const, module
from tvm import relax


def convolutions(seed: int = 0) -> tvm.IRModule:
    """A 3x3 convolution, a depthwise, one in groups and a 1x1 one, then a dense layer."""
    weights = [
        array(seed, 8, 3, 3, 3), array(seed + 1, 8, 1, 3, 3), array(seed + 2, 12, 4, 3, 3),
        array(seed + 3, 20, 12, 1, 1), array(seed + 4, 20, 10),
    ]  # fmt: skip

    def body(emit: Any, x: Any) -> Any:
        for weight, groups in zip(weights[:4], (1, 8, 2, 1), strict=True):
            pad = weight.shape[2] // 2
            x = emit(relax.op.nn.conv2d(x, const(weight), padding=pad, groups=groups))
            x = emit(relax.op.nn.relu(x))
        x = emit(relax.op.mean(x, [2, 3]))
        return relax.op.matmul(x, const(weights[4]))

    return module({"x": (1, 3, 8, 8)}, body)


def lstm(steps: int = 3, inputs: int = 5, hidden: int = 4) -> onnx.ModelProto:
    """One LSTM layer, whose gates are ``w`` (4 H, inputs) and ``r`` (4 H, H)."""
    weights = {
        "w": array(0, 1, 4 * hidden, inputs), "r": array(1, 1, 4 * hidden, hidden),
        "b": array(2, 1, 8 * hidden),
    }  # fmt: skip
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=hidden)
    return onnx_model([node], (steps, 1, inputs), weights)


def gru(steps: int = 3, inputs: int = 5, hidden: int = 4) -> onnx.ModelProto:
    """One GRU layer in the form whose recurrent weights are cut in two at each step."""
    weights = {"w": array(0, 1, 3 * hidden, inputs), "r": array(1, 1, 3 * hidden, hidden)}
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=hidden)
    return onnx_model([node], (steps, 1, inputs), weights)


def onnx_model(
    nodes: list[onnx.NodeProto], shape: tuple[int, ...], weights: dict[str, np.ndarray]
) -> onnx.ModelProto:
    """A model of the input ``x`` and the output ``y``."""
    graph = helper.make_graph(
        nodes, "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
