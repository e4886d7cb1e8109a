"""Zeros of a pruned module in its ONNX model, against NumPy's masks and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_ext
from tests import models
from tvm_ext.errors import PruningError
from tvm_ext.passes.pruning import ChannelPrune, MagnitudePrune
from tvm_ext.pruned_onnx import pruned_onnx

QUARTER = MagnitudePrune(0.25)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    weights: Mapping[str, np.ndarray],
    dtype: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """Nodes of which the last makes ``y``."""
    graph = helper.make_graph(
        nodes,
        "pruned",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def pruned(model: onnx.ModelProto, scheme: Any = QUARTER, **options: Any) -> onnx.ModelProto:
    module, _ = tvm_ext.prune(model, scheme, exclude=(), **options)
    return pruned_onnx(model, module, options.get("input_shapes"))


def weights_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def largest_quarter(weights: np.ndarray) -> np.ndarray:
    """The weights without three quarters of them, the smallest."""
    limit = np.sort(np.abs(weights), axis=None)[-round(weights.size / 4)]
    return np.where(np.abs(weights) >= limit, weights, 0)


def test_only_the_weights_change() -> None:
    model = models.convnet()
    before = model.SerializeToString()
    written = pruned(model)
    assert model.SerializeToString() == before
    for name, old in weights_of(model).items():
        expected = largest_quarter(old) if name.startswith("w") else old
        np.testing.assert_array_equal(weights_of(written)[name], expected)
    del model.graph.initializer[:], written.graph.initializer[:]
    assert written == model


@pytest.mark.parametrize(
    ("op", "gates", "attributes"),
    [
        ("LSTM", [(0, 4)], {}), ("GRU", [(0, 2), (2, 3)], {}),
        ("GRU", [(0, 3)], {"linear_before_reset": 1}), ("RNN", [(0, 1)], {}),
    ],
)  # fmt: skip
def test_recurrent_layers_stay_nodes(
    op: str, gates: list[tuple[int, int]], attributes: dict[str, int]
) -> None:
    """`gates` are those of a matrix product; each product keeps a quarter for itself."""
    count, hidden = gates[-1][1], 8
    node = helper.make_node(
        op, ["x", "w", "r"], ["y"], hidden_size=hidden, direction="bidirectional", **attributes
    )
    weights = {"w": normal(2, count * hidden, 4), "r": normal(2, count * hidden, hidden, seed=1)}
    model = model_of([node], {"x": (3, 1, 4)}, weights)
    module, _ = tvm_ext.prune(model, QUARTER, exclude=())
    written = pruned_onnx(model, module)
    assert [n.op_type for n in written.graph.node] == [op]
    found = weights_of(written)
    for direction in range(2):
        w = weights["w"][direction]
        np.testing.assert_array_equal(found["w"][direction], largest_quarter(w))
        for begin, end in gates:
            rows = slice(begin * hidden, end * hidden)
            r = weights["r"][direction, rows]
            np.testing.assert_array_equal(found["r"][direction, rows], largest_quarter(r))
    inputs = models.inputs_for(model)
    (expected,) = models.oracle(written, inputs)
    assert models.relative_error(tvm_ext.build(module)(inputs["x"]), expected) < models.RTOL


def test_weights_in_constants_and_transposed_ones() -> None:
    """PyTorch transposes a linear layer's weights by a node."""
    first, second = normal(8, 4), normal(6, 8, seed=1)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(first)),
        helper.make_node("Gemm", ["x", "w"], ["h"], transB=1),
        helper.make_node("Transpose", ["v"], ["vt"], perm=[1, 0]),
        helper.make_node("MatMul", ["h", "vt"], ["y"]),
    ]
    written = pruned(model_of(nodes, {"x": (2, 4)}, {"v": second}))
    np.testing.assert_array_equal(weights_of(written)["v"], largest_quarter(second))
    held = numpy_helper.to_array(written.graph.node[0].attribute[0].t)
    np.testing.assert_array_equal(held, largest_quarter(first))


def test_equal_weights_are_pruned_wherever_they_are() -> None:
    same = normal(4, 4)
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])
    ]  # fmt: skip
    written = pruned(model_of(nodes, {"x": (2, 4)}, {"v": same, "w": same}))
    for found in weights_of(written).values():
        np.testing.assert_array_equal(found, largest_quarter(same))


def test_layers_that_become_equal_by_losing_all_weights() -> None:
    weights = {"u": normal(4, 4), "v": normal(4, 4, seed=1), "w": 100 * normal(4, 4, seed=2)}
    nodes = [
        helper.make_node("MatMul", ["x", "u"], ["g"]),
        helper.make_node("MatMul", ["g", "v"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    written = pruned(model_of(nodes, {"x": (2, 4)}, weights), MagnitudePrune(0.1, scope="global"))
    counts = [np.count_nonzero(x) for x in weights_of(written).values()]
    assert counts == [0, 0, 5]


def test_open_dimensions_stay_open() -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = model_of([node], {"x": ("batch", 4)}, {"w": normal(4, 4)})
    written = pruned(model, input_shapes={"x": (3, 4)})
    assert written.graph.input[0] == model.graph.input[0]
    assert np.count_nonzero(weights_of(written)["w"]) == 4


def test_weights_that_are_read_elsewhere_are_refused() -> None:
    nodes = [
        helper.make_node("Gather", ["e", "ids"], ["h"]),
        helper.make_node("Transpose", ["e"], ["et"], perm=[1, 0]),
        helper.make_node("MatMul", ["h", "et"], ["y"]),
    ]
    model = model_of(nodes, {"ids": (3,)}, {"e": normal(16, 8)}, TensorProto.INT64)
    with pytest.raises(PruningError, match="other operators read e of layer y, too; leave the lay"):
        pruned(model)


def test_weights_that_are_computed_are_refused() -> None:
    node = helper.make_node("Gemm", ["x", "w"], ["y"], alpha=3.0)
    with pytest.raises(PruningError, match="layer y: its weights aren't in the model as they are"):
        pruned(model_of([node], {"x": (2, 4)}, {"w": normal(4, 4)}))


def test_another_graph_is_refused() -> None:
    model = models.convnet()
    smaller, _ = tvm_ext.prune(model, ChannelPrune(0.5))
    with pytest.raises(PruningError, match=r"layer c1: .*\(16, 16, 1, 1\).* of shape \(8, 16, 1"):
        pruned_onnx(model, smaller)
    node = helper.make_node("MatMul", ["x", "w"], ["other"])
    end = helper.make_node("Relu", ["other"], ["y"])
    with pytest.raises(PruningError, match=r"layer c0: .* the pruned module none"):
        pruned_onnx(
            model, tvm_ext.load_model(model_of([node, end], {"x": (2, 4)}, {"w": normal(4, 4)}))
        )
