"""The memory of a compiled model."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import tvm_ext


def test_values_without_elements_have_no_memory() -> None:
    nodes = [
        helper.make_node("Gather", ["x", "none"], ["rows"], axis=0),
        helper.make_node("Relu", ["rows"], ["y"]),
        helper.make_node("Relu", ["x"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "empty",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [0, 3]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, [4, 3]),
        ],
        [numpy_helper.from_array(np.zeros(0, "int64"), "none")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    x = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
    empty, whole = tvm_ext.build(model)(x)
    assert empty.shape == (0, 3)
    np.testing.assert_array_equal(whole, np.maximum(x, 0))
