"""The walk over an ONNX graph: known values, control flow, and nodes at fault."""

from functools import partial

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper

from tvm_ext.errors import ModelError, UnsupportedOperatorsError
from tvm_ext.frontend import load_model

from . import models
from .cases import call, calls, compile_functions, normal

make_model = partial(models.make_model, opset=18)


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def test_shared_weights_are_one_constant():
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    module = load_model(make_model(nodes, {"x": (2, 3)}, ["y"], {"w": normal(3, 3)}))
    first, second = module["main"].body.blocks[0].bindings
    assert first.value.args[1].same_as(second.value.args[1])


def test_damaged_initializer_is_named():
    model = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"])], {"x": (3,)}, ["y"], {"w": normal(3)}
    )
    model.graph.initializer[0].raw_data = b"\0\0\0\0\0"
    with pytest.raises(ModelError, match="initialiser 'w' is damaged"):
        load_model(model)


def test_undefined_value_is_named_with_its_reader():
    model = make_model(
        [helper.make_node("Add", ["x", "ghost"], ["y"], name="sum")], {"x": (3,)}, ["y"]
    )
    with pytest.raises(ModelError, match=r"node 'sum' \(Add\) reads 'ghost'"):
        load_model(model)


def test_failed_conversion_names_the_node():
    model = make_model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        {"x": (2, 3)},
        ["y"],
        {"w": normal(4, 5)},
    )
    with pytest.raises(ModelError, match=r"node 'product' \(MatMul\) can't be converted"):
        load_model(model)


def branch(name, op):
    return helper.make_graph(
        [helper.make_node(op, ["x"], [f"{name}_out"], name=f"{name}_node")],
        name,
        [],
        [onnx.ValueInfoProto(name=f"{name}_out")],
    )


def test_if_with_a_known_condition_is_its_branch():
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Greater", ["shape", "two"], ["wide"]),
        helper.make_node("Squeeze", ["wide"], ["cond"]),
        helper.make_node(
            "If",
            ["cond"],
            ["y"],
            then_branch=branch("then", "Tanh"),
            else_branch=branch("other", "Relu"),
        ),
    ]
    model = make_model(nodes, {"x": ("n",)}, ["y"], {"two": np.array([2])})
    assert calls(load_model(model, {"x": (3,)})) == ["relax.tanh"]
    assert calls(load_model(model, {"x": (2,)})) == ["relax.nn.relu"]


def test_if_on_data_is_unsupported():
    node = helper.make_node(
        "If",
        ["c"],
        ["y"],
        name="choice",
        then_branch=branch("then", "Tanh"),
        else_branch=branch("other", "Nonsense"),
    )
    model = make_model([node], {"x": (3,)}, ["y"])
    model.graph.input.append(tensor("c", [], TensorProto.BOOL))
    with pytest.raises(UnsupportedOperatorsError) as caught:
        load_model(model)
    assert caught.value.nodes == {"If": ("choice",), "Nonsense": ("other_node",)}


def test_loop_over_constants_is_evaluated():
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum_in", "step"], ["sum_out"]),
            helper.make_node("Identity", ["go_in"], ["go_out"]),
        ],
        "body",
        [
            tensor("i", [], TensorProto.INT64),
            tensor("go_in", [], TensorProto.BOOL),
            tensor("sum_in", [1]),
        ],
        [tensor("go_out", [], TensorProto.BOOL), tensor("sum_out", [1])],
    )
    nodes = [
        helper.make_node("Loop", ["count", "go", "zero"], ["total"], body=body),
        helper.make_node("Mul", ["x", "total"], ["y"]),
    ]
    constants = {
        "count": np.array(4),
        "go": np.array(True),
        "zero": np.zeros(1, "float32"),
        "step": np.array([1.5], "float32"),
    }
    module = load_model(make_model(nodes, {"x": (2,)}, ["y"], constants))
    assert calls(module) == ["relax.multiply"]
    factor = module["main"].body.blocks[0].bindings[0].value.args[1]
    assert isinstance(factor, tvm.ir.GenericConst)
    assert factor.value.numpy().tolist() == [6.0]


def test_constant_output_and_passed_through_input():
    model = make_model(
        [helper.make_node("Shape", ["x"], ["size"]), helper.make_node("Identity", ["x"], ["same"])],
        {"x": (2, 3)},
        ["size", "same"],
    )
    size, same = call(compile_functions({"f": load_model(model)["main"]}), "f", normal(2, 3))
    assert size.tolist() == [2, 3]
    np.testing.assert_array_equal(same, normal(2, 3))


def test_sequences_of_constant_length():
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0),
        helper.make_node("SequenceAt", ["parts", "one"], ["y"]),
    ]
    model = make_model(nodes, {"x": (3, 2)}, ["y"], {"one": np.array(1)})
    x = normal(3, 2)
    got = call(compile_functions({"f": load_model(model)["main"]}), "f", x)[0]
    np.testing.assert_array_equal(got, x[1:2])
