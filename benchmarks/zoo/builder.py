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

    def conv(
        self,
        x: str,
        name: str,
        weight: np.ndarray,
        *,
        stride: int = 1,
        pads: tuple[int, int] = (0, 0),
        group: int = 1,
    ) -> str:
        """Append a 2-D convolution without bias; `weight` is OIHW, `pads` (before, after)."""
        return self.op(
            "Conv",
            x,
            self.weight(f"{name}.weight", weight),
            name=name,
            kernel_shape=list(weight.shape[2:]),
            strides=[stride, stride],
            pads=[pads[0], pads[0], pads[1], pads[1]],
            dilations=[1, 1],
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

    def classifier(self, x: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """Append global average pool, flatten and a dense layer; `weight` is (out, in)."""
        x = self.op("Flatten", self.op("GlobalAveragePool", x), axis=1)
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
