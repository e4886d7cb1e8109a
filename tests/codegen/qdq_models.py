"""Quantised ONNX models in QDQ form with integer inputs and outputs, and ONNX Runtime's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.integer_session import integer_session
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc import Partition, partition
from tvm_ext.codegen.network_reference import run_reference
from tvm_ext.frontend import load_model


class QdqModel:
    """Grows a model; real values are named, and each is quantised with a scale and zero point."""

    def __init__(self, dtype: str = "int8", seed: int = 0) -> None:
        self.dtype = dtype
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.quantized: dict[str, tuple[float, int]] = {}

    def input(self, name: str, shape: Sequence[int], scale: float = 0.05, zero: int = 3) -> str:
        """The real value of a new 8-bit input."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return self.dequantize(name, scale, zero)

    def dequantize(self, integers: str, scale: float, zero: int) -> str:
        """The real value of 8-bit integers."""
        real = f"{integers}_real"
        scales = self._scale(integers, scale, zero)
        self.node("DequantizeLinear", [integers, *scales], real)
        self.quantized[real] = scale, zero
        return real

    def op(
        self, op: str, inputs: Sequence[str], scale: float = 0.05, zero: int = 3, **attributes: Any
    ) -> str:
        """The real value of an operator's quantised result."""
        value = f"v{len(self.nodes)}"
        self.node(op, inputs, value, **attributes)
        return self.dequantize(self.quantize(value, scale, zero), scale, zero)

    def quantize(self, real: str, scale: float = 0.05, zero: int = 3) -> str:
        """The integers of a real value."""
        integers = f"{real}_q"
        self.node("QuantizeLinear", [real, *self._scale(integers, scale, zero)], integers)
        return integers

    def node(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Any operator."""
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=output, **attributes))
        return output

    def weight(self, shape: Sequence[int], axis: int = 0, high: float = 0.01) -> str:
        """Random int8 weights, dequantised with one scale an output channel."""
        values = self.rng.integers(-127, 128, shape).astype("int8")
        scales = self.rng.uniform(high / 10, high, shape[axis]).astype("float32")
        return self.given_weight(values, scales, np.zeros(shape[axis], "int8"), axis)

    def given_weight(self, values: Any, scales: Any, zeros: Any, axis: int = 0) -> str:
        """These weights, dequantised."""
        name = f"w{len(self.nodes)}"
        parts = [self.constant(f"{name}_{k}", a) for k, a in enumerate((values, scales, zeros))]
        # An axis is for scales that are vectors.
        attributes = {"axis": axis} if np.ndim(scales) else {}
        self.node("DequantizeLinear", parts, name, **attributes)
        return name

    def bias(self, data: str, weight: str, channels: int) -> str:
        """A random int32 bias, dequantised with the product of the operands' scales."""
        values = self.rng.integers(-2000, 2000, channels).astype("int32")
        scales = next(
            numpy_helper.to_array(t) for t in self.tensors if t.name == f"{weight}_1"
        ) * np.float32(self.quantized[data][0])
        return self.given_weight(values, scales, np.zeros(scales.shape, "int32"))

    def constant(self, name: str, value: Any) -> str:
        """A constant."""
        self.tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def output(self, real: str) -> None:
        """Return the integers of a value that `op` made."""
        self.raw_output(real.removesuffix("_real"), self.dtype)

    def raw_output(self, name: str, dtype: str = "float32") -> None:
        """Return any value."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def model(self) -> onnx.ModelProto:
        """The model."""
        graph = helper.make_graph(self.nodes, "qdq", self.inputs, self.outputs, self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def _scale(self, name: str, scale: float, zero: int) -> list[str]:
        return [
            self.constant(f"{name}_scale", np.float32(scale)),
            self.constant(f"{name}_zero", np.array(zero, self.dtype)),
        ]


def onnxruntime_results(
    model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """What ONNX Runtime computes."""
    return list(integer_session(model).run(None, dict(inputs)))


def random_integers(model: onnx.ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    """Every 8-bit value equally often."""
    rng = np.random.default_rng(seed)
    found = {}
    for value in model.graph.input:
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        limits = np.iinfo(dtype)
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        found[value.name] = rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return found


def partitioned(model: onnx.ModelProto, depthwise: str = "hardware") -> Partition:
    """The model cut for an accelerator."""
    return partition(load_model(model), Accelerator(depthwise=depthwise))


def offloaded_results(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The reference's results of a model that is one subgraph as a whole."""
    found = partitioned(model)
    assert len(found.subgraphs) == 1, str(found)
    assert not found.refusals, str(found)
    subgraph = found.subgraphs[0]
    shift = 128 if subgraph.unsigned else 0
    given = {
        subgraph.network.inputs[list(inputs).index(name)]: (x.astype(int) - shift).astype("int8")
        for name, x in inputs.items()
    }
    made = run_reference(subgraph.network, given)
    dtype = "uint8" if shift else "int8"
    return [(made[name].astype(int) + shift).astype(dtype) for name in subgraph.network.outputs]


def assert_same_bits(model: onnx.ModelProto, tolerance: int = 0) -> None:
    """The whole model is one subgraph, whose results are ONNX Runtime's."""
    inputs = random_integers(model)
    found, expected = offloaded_results(model, inputs), onnxruntime_results(model, inputs)
    for ours, theirs in zip(found, expected, strict=True):
        assert len(np.unique(theirs)) > min(8, theirs.size // 2), (
            "a test of saturated values tests nothing"
        )
        assert ours.dtype == theirs.dtype
        assert np.abs(ours.astype(int) - theirs).max() <= tolerance
