"""Models with sparse weights: the planner takes the sparse products, and ONNX Runtime agrees."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_ext
from tests.schedules import oracles
from tests.schedules.sparse_weights import sparse_weights

SIZE = 1024
HIDDEN = 256
STEPS = 3


def perceptron(rows: int, outputs: int) -> onnx.ModelProto:
    """Two dense layers; `outputs` neighbours share their zeros."""
    weights = {
        "w0": sparse_weights((SIZE, SIZE), 0.03, outputs, seed=3).T,
        "w1": sparse_weights((SIZE, SIZE), 0.03, outputs, seed=5).T,
        "b": oracles.random((SIZE,), 4),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "w1"], ["y"]),
    ]
    return _model(nodes, weights, (rows, SIZE), (rows, SIZE))


def lstm() -> onnx.ModelProto:
    """An LSTM with weights in blocks, of which the zeros are those of 16 neighbours in a gate."""
    shape = (4 * HIDDEN, HIDDEN)
    weights = {
        "w": 0.1 * sparse_weights(shape, 0.05, 16, seed=3)[None],
        "r": 0.1 * sparse_weights(shape, 0.05, 16, seed=5)[None],
        "b": 0.1 * oracles.random((1, 8 * HIDDEN), 4),
    }
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=HIDDEN)
    return _model([node], weights, (STEPS, 1, HIDDEN), (STEPS, 1, 1, HIDDEN))


def _model(
    nodes: list[onnx.NodeProto],
    weights: dict[str, np.ndarray],
    data: tuple[int, ...],
    result: tuple[int, ...],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "sparse",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, data)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [
            numpy_helper.from_array(np.ascontiguousarray(x, "float32"), name)
            for name, x in weights.items()
        ],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def assert_agrees(model: onnx.ModelProto) -> list[str]:
    """Compare with ONNX Runtime; the algorithms of the matrix products."""
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    data = oracles.random(tuple(shape), 1)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, {"x": data})[0]
    compiled = tvm_ext.build(model)
    actual = compiled(data)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    return [layer.algorithm for layer in compiled.plan if layer.ops[0] == "matmul"]


@pytest.mark.parametrize(
    ("rows", "outputs", "algorithm"),
    [
        (1, 1, "sparse_gemv"),
        (1, 16, "sparse_gemv_block"),
        (32, 1, "sparse_matmul"),
        (32, 16, "sparse_matmul_block"),
    ],
)
def test_perceptron(rows: int, outputs: int, algorithm: str) -> None:
    assert assert_agrees(perceptron(rows, outputs)) == [algorithm] * 2


def test_lstm() -> None:
    """The input's product of all steps at once, then one for each state but the first."""
    assert assert_agrees(lstm()) == ["sparse_gemv_block"] * STEPS
