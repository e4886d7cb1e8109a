"""Write an ONNX graph node by node, as an exporter would."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.zoo.recipe import Inputs

IR_VERSION = 8
OPSET = 17


class GraphBuilder:
    """A graph under construction: every method appends nodes and returns the new tensor's name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, np.ndarray] = {}

    def weight(self, name: str, value: np.ndarray) -> str:
        """Add an initializer; a name that is taken must stand for an equal array."""
        if name in self._weights and not np.array_equal(self._weights[name], value):
            raise ValueError(f"initializer {name!r} already has another value")
        self._weights[name] = np.array(value, order="C")
        return name

    def op(self, op_type: str, *inputs: str, name: str = "", **attributes: object) -> str:
        """Append a node with one output."""
        name = name or f"{op_type}_{len(self._nodes)}"
        output = f"{name}_output"
        self._nodes.append(helper.make_node(op_type, inputs, [output], name=name, **attributes))
        return output

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        """Append a Split and return its outputs' names."""
        name = f"Split_{len(self._nodes)}"
        outputs = [f"{name}_output_{i}" for i in range(len(sizes))]
        inputs = [x, self.integers(f"{name}.sizes", sizes)]
        self._nodes.append(helper.make_node("Split", inputs, outputs, name=name, axis=axis))
        return outputs

    def scalar(self, name: str, value: float) -> str:
        """Add a float32 initializer without dimensions."""
        return self.weight(name, np.array(value, np.float32))

    def integers(self, name: str, values: Sequence[int]) -> str:
        """Add a vector of int64 as initializer."""
        return self.weight(name, np.array(values, np.int64))

    def conv(
        self,
        x: str,
        name: str,
        weight: np.ndarray,
        *,
        bias: np.ndarray | None = None,
        stride: int = 1,
        pads: tuple[int, int] = (0, 0),
        group: int = 1,
    ) -> str:
        """Append a convolution; `weight` is OIHW or OIDHW, `pads` (before, after) each axis."""
        rank = weight.ndim - 2
        biases = [] if bias is None else [self.weight(f"{name}.bias", bias)]
        return self.op(
            "Conv",
            x,
            self.weight(f"{name}.weight", weight),
            *biases,
            name=name,
            kernel_shape=list(weight.shape[2:]),
            strides=[stride] * rank,
            pads=[pads[0]] * rank + [pads[1]] * rank,
            dilations=[1] * rank,
            group=group,
        )

    def batch_norm(
        self, x: str, name: str, parameters: Sequence[np.ndarray], epsilon: float = 1e-5
    ) -> str:
        """Append a batch norm; `parameters` are scale, bias, mean and variance, each (C,)."""
        roles = ("weight", "bias", "running_mean", "running_var")
        names = [
            self.weight(f"{name}.{role}", value)
            for role, value in zip(roles, parameters, strict=True)
        ]
        return self.op("BatchNormalization", x, *names, name=name, epsilon=epsilon)

    def relu(self, x: str) -> str:
        """Append a ReLU."""
        return self.op("Relu", x)

    def relu6(self, x: str) -> str:
        """Append a Clip to [0, 6]."""
        low = self.weight("clip_min", np.array(0.0, np.float32))
        high = self.weight("clip_max", np.array(6.0, np.float32))
        return self.op("Clip", x, low, high)

    def erf_gelu(self, x: str) -> str:
        """Append x * (1 + erf(x / sqrt 2)) / 2 as exporters without a Gelu operator write it."""
        y = self.op("Erf", self.op("Div", x, self.scalar("sqrt_2", np.sqrt(2.0))))
        y = self.op("Mul", x, self.op("Add", y, self.scalar("one", 1.0)))
        return self.op("Mul", y, self.scalar("half", 0.5))

    def classifier(self, x: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """Append global average pool, flatten and a dense layer; `weight` is (out, in)."""
        x = self.op("Flatten", self.op("GlobalAveragePool", x), axis=1)
        return self.dense(x, name, weight, bias)

    def dense(self, x: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """Append a fully connected layer on (N, in); `weight` is (out, in)."""
        return self.op(
            "Gemm",
            x,
            self.weight(f"{name}.weight", weight),
            self.weight(f"{name}.bias", bias),
            name=name,
            transB=1,
        )

    def model(self, inputs: Inputs, output: str, output_shape: Sequence[int]) -> onnx.ModelProto:
        """Finish the model.

        `inputs` gives names, shapes and dtypes; `output` is float32 and read by no node.
        """
        for node in self._nodes:
            if output in node.output:
                node.output[:] = ["output"]
        graph = helper.make_graph(
            self._nodes,
            self.name,
            [
                helper.make_tensor_value_info(
                    key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
                )
                for key, value in inputs.items()
            ],
            [helper.make_tensor_value_info("output", onnx.TensorProto.FLOAT, output_shape)],
            [numpy_helper.from_array(value, key) for key, value in self._weights.items()],
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="tvm_ext.benchmarks.zoo",
        )
