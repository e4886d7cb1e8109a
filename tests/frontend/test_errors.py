"""What a user reads when a model can't be loaded: the file, node, input or dimension at fault."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tvm_ext.errors import InputShapeError, ModelError, UnsupportedOperatorsError
from tvm_ext.frontend import load_model

from .models import make_model, relu_model


def node(op, inputs, outputs, name=None, **attrs):
    return helper.make_node(op, inputs, outputs, name=name, **attrs)


def test_an_unknown_operator_of_constants_is_unsupported():
    model = make_model(
        [node("NoSuchOp", ["w"], ["v"], "odd"), node("Add", ["x", "v"], ["y"])],
        {"x": (2,)},
        ["y"],
        {"w": np.ones(2, "float32")},
    )
    with pytest.raises(UnsupportedOperatorsError, match="NoSuchOp: odd"):
        load_model(model)


def test_an_unsupported_operator_in_a_branch_is_listed():
    branches = {
        name: helper.make_graph(
            [node("NonZero", ["x"], [f"{name}_out"], f"{name}_node")],
            name,
            [],
            [onnx.ValueInfoProto(name=f"{name}_out")],
        )
        for name in ("then_branch", "else_branch")
    }
    model = make_model([node("If", ["c"], ["y"], "choice", **branches)], {"x": (2,)}, ["y"])
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, ()))
    with pytest.raises(UnsupportedOperatorsError) as caught:
        load_model(model)
    assert caught.value.nodes == {
        "If": ("choice",),
        "NonZero": ("else_branch_node", "then_branch_node"),
    }


def test_every_cut_of_a_file_is_found_and_named(tmp_path):
    path = tmp_path / "cut.onnx"
    whole = relu_model((1, 8)).SerializeToString()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=r"cut\.onnx"):
            load_model(path)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("model.onnx", " isn't a complete ONNX file"),
        ("model.bin", " isn't a complete ONNX file"),
        ("model.json", ": begins neither as a Relay module"),
        ("model.txt", ": begins neither as a Relay module"),
    ],
)
def test_a_file_that_is_no_model_is_named(tmp_path, name, reason):
    path = tmp_path / name
    path.write_bytes(b"no model at all")
    with pytest.raises(ModelError, match=f"{name}{reason}"):
        load_model(str(path))


def test_a_directory_is_named(tmp_path):
    with pytest.raises(ModelError, match=f"{tmp_path.name} can't be read"):
        load_model(tmp_path)


def test_a_failed_conversion_names_node_operator_and_inputs():
    model = make_model(
        [node("MatMul", ["x", "z"], ["y"], "product")], {"x": (2, 3), "z": (4, 5)}, ["y"]
    )
    with pytest.raises(
        ModelError, match=r"node 'product' \(MatMul\) can't be converted: "
    ) as caught:
        load_model(model)
    assert "(2, 3)" in str(caught.value)
    assert "(4, 5)" in str(caught.value)


def test_a_weight_is_not_an_input_that_takes_a_shape():
    model = make_model(
        [node("Add", ["x", "w"], ["y"])],
        {"x": ("n",), "w": (1,)},
        ["y"],
        {"w": np.ones(1, "float32")},
    )
    with pytest.raises(InputShapeError, match=r"unknown inputs \['w'\]; .* \['x'\]"):
        load_model(model, {"x": (2,), "w": (1,)})


def test_unknown_params_are_named():
    with pytest.raises(ModelError, match=r"unknown names \['q'\]; the model's inputs are \['x'\]"):
        load_model(relu_model((2,)), params={"q": np.ones(2, "float32")})
