"""The list of unsupported operators: complete, with every node."""

import pytest
from onnx import TensorProto, helper

from tvm_ext.errors import UnsupportedOperatorsError
from tvm_ext.frontend import load_model


def test_all_unsupported_operators_and_nodes_are_listed_at_once():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])
    body = helper.make_graph(
        [
            helper.make_node("Odd", ["acc"], ["acc_out"], name="inner", domain="com.example"),
            helper.make_node("Identity", ["go"], ["go_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("acc", TensorProto.FLOAT, [2, 2]),
        ],
        [
            helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("acc_out", TensorProto.FLOAT, [2, 2]),
        ],
    )
    nodes = [
        helper.make_node("Det", ["x"], ["d"], name="first"),
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Odd", ["r"], ["o"], domain="com.example"),
        helper.make_node("Det", ["o"], ["d2"]),
        helper.make_node("Loop", ["", "", "o"], ["l"], name="loop", body=body),
        helper.make_node("Sum", ["d", "d2", "l"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.example", 1)]
    with pytest.raises(UnsupportedOperatorsError) as caught:
        load_model(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    assert caught.value.nodes == {
        "Det": ("first", "d2"),
        "com.example::Odd": ("o", "inner"),
        "Loop": ("loop",),
    }
    message = str(caught.value)
    assert "Det: first, d2" in message
    assert "com.example::Odd: o, inner" in message
