"""Shapes that a user gives: every way to get one wrong has its own message."""

import re

import pytest
from onnx import TensorProto, helper

from tvm_ext.errors import InputShapeError
from tvm_ext.frontend import load_model


def model(*dims):
    graph = helper.make_graph(
        [helper.make_node("Relu", ["image"], ["y"])],
        "g",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def test_static_shape_needs_nothing_and_can_be_replaced():
    assert [int(d) for d in load_model(model(2, 3))["main"].params[0].ty.shape] == [2, 3]
    assert [
        int(d) for d in load_model(model(2, 3), {"image": (5, 3)})["main"].params[0].ty.shape
    ] == [5, 3]


def test_dynamic_dimensions_are_filled():
    module = load_model(model("batch", 3, "h", None), {"image": [1, 3, 8, 7]})
    assert [int(d) for d in module["main"].params[0].ty.shape] == [1, 3, 8, 7]
    assert [int(d) for d in module["main"].ret_ty.shape] == [1, 3, 8, 7]


@pytest.mark.parametrize(
    ("dims", "shapes", "message"),
    [
        (
            ("batch", 3, 8),
            None,
            "input 'image', dimension 0 is dynamic (batch): pass its shape, for example "
            "input_shapes={'image': (1, 3, 8)}",
        ),
        ((2, None), {}, "input 'image', dimension 1 is dynamic (unnamed)"),
        (
            (2, 3),
            {"picture": (2, 3)},
            "unknown inputs ['picture']; the model's inputs are ['image']",
        ),
        ((2, 3), {"image": (2, -3)}, "input 'image', dimension 1: -3 must be at least 1"),
        (("n", 3), {"image": (0, 3)}, "input 'image', dimension 0: 0 must be at least 1"),
        ((2, 3), {"image": (2, 3, 1)}, "input 'image' has 2 dimensions, input_shapes gives 3"),
        ((2, 3), {"image": (2, 3.5)}, "input 'image', dimension 1: 3.5 isn't an int"),
        ((2, 3), {"image": (True, 3)}, "input 'image', dimension 0: True isn't an int"),
        ((2, 3), {"image": 6}, "input 'image': the shape must be a tuple of ints, not 6"),
        ((2, 0), None, "input 'image', dimension 1: 0 must be at least 1"),
        ((-1, 3), None, "input 'image', dimension 0: -1 must be at least 1"),
    ],
)
def test_bad_shapes_are_refused(dims, shapes, message):
    with pytest.raises(InputShapeError, match=re.escape(message)):
        load_model(model(*dims), shapes)
