"""A small CNN with what MobileNets and ResNets are made of, and its quantised forms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tvm_ext.quantize import QuantizeOptions, quantize

SHAPE = (1, 3, 17, 18)


def small_cnn() -> onnx.ModelProto:
    """Convolution, inverted residual with ReLU6, pools, strided convolution, product; random."""
    rng = np.random.default_rng(0)
    tensors = [
        numpy_helper.from_array(np.float32(v), name) for name, v in [("low", 0), ("high", 6)]
    ]
    nodes = []

    def weights(*shape: int) -> str:
        fan_in = np.prod(shape[1:]) if len(shape) > 1 else 100
        tensors.append(
            numpy_helper.from_array(
                (rng.normal(size=shape) * np.sqrt(2 / fan_in)).astype("float32"), f"w{len(tensors)}"
            )
        )
        return str(tensors[-1].name)

    def node(op: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [f"{op}{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    def conv(x: str, cin: int, cout: int, size: int, group: int = 1, **attributes: Any) -> str:
        w, b = weights(cout, cin // group, size, size), weights(cout)
        return node("Conv", x, w, b, group=group, **attributes)

    same = {"pads": [1, 1, 1, 1]}
    x = node("Relu", conv("x", 3, 12, 3, strides=[2, 2], **same))
    y = node("Clip", conv(x, 12, 24, 1), "low", "high")
    y = node("Clip", conv(y, 24, 24, 3, group=24, **same), "low", "high")
    y = node("Add", conv(y, 24, 12, 1), x)
    y = node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], **same)
    y = conv(y, 12, 17, 3, auto_pad="SAME_UPPER", strides=[2, 2])
    factors = [rng.uniform(0.7, 1.3, 17).astype("float32") for _ in range(4)]
    tensors.extend(numpy_helper.from_array(a, f"bn{i}") for i, a in enumerate(factors))
    y = node("Relu", node("BatchNormalization", y, *(f"bn{i}" for i in range(4))))
    y = node("Flatten", node("GlobalAveragePool", y))
    nodes.append(helper.make_node("Gemm", [y, weights(10, 17), weights(10)], ["y"], transB=1))
    graph = helper.make_graph(
        nodes, "small_cnn", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 10))], tensors,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def images(count: int, seed: int = 0) -> list[np.ndarray]:
    """Standard normal images."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=SHAPE).astype("float32") for _ in range(count)]


@cache
def quantized(form: str, activations: str, per_channel: bool = True) -> bytes:
    """The small CNN, quantised and serialised."""
    options = QuantizeOptions(form=form, activations=activations, per_channel=per_channel)
    return bytes(quantize(small_cnn(), images(8), options).SerializeToString())


def quantized_model(form: str, activations: str, per_channel: bool = True) -> onnx.ModelProto:
    """The small CNN, quantised."""
    return onnx.ModelProto.FromString(quantized(form, activations, per_channel))
