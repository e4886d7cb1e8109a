"""Tiny ONNX models that several tests share, and ONNX Runtime as the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.integer_session import integer_session

RTOL = 1e-4
"""Largest difference over the largest magnitude that float32 kernels may show here."""


def convnet(pooled: bool = False) -> onnx.ModelProto:
    """Conv-relu, a concatenation of two convolutions, pooling, a fully connected layer.

    With `pooled`, what is pooled is an output, too, and the last layer has a kernel of its own.
    """
    rng = np.random.default_rng(1)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        scale = np.sqrt(2 / np.prod(shape[1:]))
        return numpy_helper.from_array((rng.normal(size=shape) * scale).astype("float32"), name)

    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1], name="stem"),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1"], ["c1"], name="left"),
        helper.make_node("Conv", ["r0", "w2"], ["c2"], pads=[1, 1, 1, 1], name="right"),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("Concat", ["r1", "r2"], ["cat"], axis=1),
        helper.make_node("GlobalAveragePool", ["cat"], ["pool"]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["scores"], transB=1, name="head"),
    ]
    initializers = [
        weights("w0", 16, 3, 3, 3),
        weights("b0", 16),
        weights("w1", 16, 16, 1, 1),
        weights("w2", 32, 16, 3, 3),
        weights("w3", 10, 48),
        weights("b3", 10),
    ]
    outputs = {"scores": (1, 10)} | ({"pool": (1, 48, 1, 1)} if pooled else {})
    return _model("convnet", nodes, {"x": (1, 3, 12, 12)}, outputs, initializers=initializers)


def two_inputs() -> onnx.ModelProto:
    """``total = (a + b) * 2`` and ``indices = cast(b, int64)``: two inputs, two outputs."""
    two = numpy_helper.from_array(np.float32(2), "two")
    nodes = [
        helper.make_node("Add", ["a", "b"], ["sum"]),
        helper.make_node("Mul", ["sum", "two"], ["total"]),
        helper.make_node("Relu", ["b"], ["positive"]),
    ]
    shapes = {"a": (2, 3), "b": (2, 3)}
    outputs = {"total": (2, 3), "positive": (2, 3)}
    return _model("two_inputs", nodes, shapes, outputs, initializers=[two])


def open_batch() -> onnx.ModelProto:
    """ReLU with a batch dimension that the model leaves open."""
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    return _model("open_batch", nodes, {"x": ("batch", 4)}, {"y": ("batch", 4)})


def operators(
    nodes: Sequence[tuple[str, Sequence[str], dict[str, Any]]],
    inputs: Mapping[str, np.ndarray],
    weights: Mapping[str, np.ndarray],
) -> onnx.ModelProto:
    """Operators side by side, each with its result as an output: ``y0``, ``y1``, ...

    `nodes` are operators with the names of what they read and their attributes.
    """
    made = [
        helper.make_node(op, list(names), [f"y{i}"], **attributes)
        for i, (op, names, attributes) in enumerate(nodes)
    ]
    graph = helper.make_graph(
        made,
        "operators",
        [
            helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for k, x in inputs.items()
        ],
        [onnx.ValueInfoProto(name=f"y{i}") for i in range(len(made))],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def oracle(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime computes."""
    return list(integer_session(model).run(None, inputs))


def inputs_for(model: onnx.ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    """Standard normal float32 inputs."""
    rng = np.random.default_rng(seed)
    return {
        value.name: rng.normal(size=[d.dim_value for d in value.type.tensor_type.shape.dim]).astype(
            "float32"
        )
        for value in model.graph.input
    }


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over the largest magnitude."""
    assert actual.shape == expected.shape
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def _model(
    name: str,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int | str, ...]],
    outputs: dict[str, tuple[int | str, ...]],
    initializers: list[onnx.TensorProto] | None = None,
) -> onnx.ModelProto:
    def values(shapes: dict[str, tuple[int | str, ...]]) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(key, TensorProto.FLOAT, shape)
            for key, shape in shapes.items()
        ]

    graph = helper.make_graph(nodes, name, values(inputs), values(outputs), initializers or [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model
