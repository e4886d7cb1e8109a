"""A small text detector with what PP-OCR's is made of, and its quantised forms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tvm_ext.quantize import QuantizeOptions, quantize

SHAPE = (1, 3, 16, 24)


class _Graph:
    """Collects nodes and random weights."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def constant(self, value: Any) -> str:
        name = f"c{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        output = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def conv(self, x: str, cin: int, cout: int, size: int = 1, group: int = 1, **attrs: Any) -> str:
        fan_in = cin // group * size**2
        weight = self.rng.normal(size=(cout, cin // group, size, size)) * np.sqrt(2 / fan_in)
        bias = self.rng.normal(size=cout) / 10
        parts = [self.constant(a.astype("float32")) for a in (weight, bias)]
        return self.node("Conv", x, *parts, group=group, pads=[size // 2] * 4, **attrs)

    def affine(self, x: str) -> str:
        """A learnt factor and a learnt shift of the whole tensor."""
        factor, shift = self.rng.uniform(-1.5, 1.5, 2).astype("float32")
        x = self.node("Mul", self.constant(factor.reshape(1)), x)
        return self.node("Add", x, self.constant(shift.reshape(1)))

    def hard_swish(self, x: str) -> str:
        shifted = self.node("Add", x, self.constant(np.float32(3)))
        gate = self.node("Clip", shifted, *(self.constant(np.float32(v)) for v in (0, 6)))
        return self.node("Div", self.node("Mul", x, gate), self.constant(np.float32(6)))

    def gated(self, x: str, channels: int) -> str:
        """Squeeze and excite, added to its input."""
        squeezed = self.node("GlobalAveragePool", x)
        squeezed = self.node("Relu", self.conv(squeezed, channels, channels // 2))
        gate = self.conv(squeezed, channels // 2, channels)
        return self.node("Add", x, self.node("Mul", x, self.node("HardSigmoid", gate, alpha=0.2)))

    def enlarged(self, x: str, factor: int) -> str:
        scales = self.constant(np.array([1, 1, factor, factor], "float32"))
        nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.node("Resize", x, "", scales, mode="nearest", **nearest)


def small_detector() -> onnx.ModelProto:
    """Two scales with hard swish, gates, resizing, sums and a concatenation; random weights."""
    g = _Graph()
    x = g.hard_swish(g.affine(g.conv("x", 3, 8, 3, strides=[2, 2])))
    fine = g.affine(g.conv(g.affine(x), 8, 8, 3, group=8))
    coarse = g.hard_swish(g.affine(g.conv(fine, 8, 12, 3, strides=[2, 2])))
    fine, coarse = (g.gated(g.conv(y, c, 6), 6) for y, c in ((fine, 8), (coarse, 12)))
    fine = g.node("Add", fine, g.enlarged(coarse, 2))
    g.node("Concat", g.enlarged(coarse, 2), fine, axis=1)
    g.nodes[-1].output[0] = "joined"
    g.nodes.append(helper.make_node("Sigmoid", [g.conv("joined", 12, 1, 3)], ["y"]))
    graph = helper.make_graph(
        g.nodes, "small_detector",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 1, 8, 12))], g.tensors,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def pages(count: int, seed: int = 0) -> list[np.ndarray]:
    """Standard normal images."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=SHAPE).astype("float32") for _ in range(count)]


@cache
def quantized_detector(form: str, activations: str, per_channel: bool) -> onnx.ModelProto:
    """The small detector, quantised."""
    options = QuantizeOptions(form=form, activations=activations, per_channel=per_channel)
    return quantize(small_detector(), pages(4), options)
