"""Small ONNX models for the tests of the importer itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int | str | None] | None


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Sequence[str],
    initializers: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 17,
    domains: Sequence[str] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """Return a model with float inputs of the given shapes."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (initializers or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *[helper.make_opsetid(d, 1) for d in domains]]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=list(functions))


def relu_model(shape: Shape) -> onnx.ModelProto:
    """Return a model of one Relu with input ``x`` and output ``y``."""
    return make_model([helper.make_node("Relu", ["x"], ["y"], name="relu")], {"x": shape}, ["y"])
