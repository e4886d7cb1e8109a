"""Whole ONNX models: reading files, names, constants, control flow and errors."""

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper

from tvm_ext.errors import ModelError, UnsupportedOperatorsError
from tvm_ext.frontend import load_model

from .cases import call, calls, compile_functions, normal, run_onnxruntime


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def make_model(nodes, inputs, outputs, initializers=(), opset=18, **kwargs):
    """Return a model; `initializers` maps names to arrays, `outputs` are names."""
    graph = helper.make_graph(
        nodes,
        "test",
        inputs,
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in dict(initializers).items()],
    )
    opsets = kwargs.pop("opset_imports", [helper.make_opsetid("", opset)])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **kwargs)


def small_network():
    """Return Conv, Relu and the shape arithmetic that exporters write for a flatten, then Gemm."""
    nodes = [
        helper.make_node("Conv", ["gpu_0/x:0", "w", "b"], ["conv"], name="c"),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("Shape", ["relu"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Unsqueeze", ["batch", "axes"], ["batch1"]),
        helper.make_node("Concat", ["batch1", "minus_one"], ["target"], axis=0),
        helper.make_node("Reshape", ["relu", "target"], ["flat"]),
        helper.make_node("Gemm", ["flat", "fc"], ["scores"], transB=1),
        helper.make_node("Identity", ["relu"], ["features"]),
    ]
    initializers = {
        "w": normal(4, 3, 3, 3),
        "b": normal(4, seed=1),
        "fc": normal(5, 4 * 3 * 4, seed=2),
        "zero": np.array(0),
        "axes": np.array([0]),
        "minus_one": np.array([-1]),
    }
    inputs = [tensor("gpu_0/x:0", ["batch", 3, 5, 6])]
    return make_model(nodes, inputs, ["scores", "features"], initializers)


def test_network_matches_onnxruntime_and_keeps_names():
    model = small_network()
    module = load_model(model, {"gpu_0/x:0": (2, 3, 5, 6)})
    main = module["main"]
    assert [p.name for p in main.params] == ["gpu_0/x:0"]
    assert list(main.attrs["tvm_ext.output_names"]) == ["scores", "features"]
    assert calls(module) == [
        "relax.nn.conv2d",
        "relax.add",
        "relax.nn.relu",
        "relax.reshape",
        "relax.matmul",
    ]
    x = normal(2, 3, 5, 6)
    wanted = run_onnxruntime(model, {"gpu_0/x:0": x})
    for ours, theirs in zip(call(compile_functions({"f": main}), "f", x), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_the_model_is_left_as_it_was():
    model = small_network()
    before = model.SerializeToString(deterministic=True)
    load_model(model, {"gpu_0/x:0": (1, 3, 5, 6)})
    assert model.SerializeToString(deterministic=True) == before


def test_initializers_among_the_inputs_are_constants():
    model = small_network()
    model.graph.input.insert(0, tensor("w", [4, 3, 3, 3]))
    module = load_model(model, {"gpu_0/x:0": (1, 3, 5, 6)})
    assert [p.name for p in module["main"].params] == ["gpu_0/x:0"]


def test_shared_weights_are_one_constant():
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    module = load_model(make_model(nodes, [tensor("x", [2, 3])], ["y"], {"w": normal(3, 3)}))
    first, second = module["main"].body.blocks[0].bindings
    assert first.value.args[1].same_as(second.value.args[1])


def test_dead_nodes_are_dropped_even_if_unsupported():
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Mystery", ["x"], ["unused"], domain="com.example"),
    ]
    assert calls(load_model(make_model(nodes, [tensor("x", [3])], ["y"]))) == ["relax.nn.relu"]


def test_path_and_external_data(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save_model(
        small_network(), path, save_as_external_data=True, location="weights", size_threshold=0
    )
    x = normal(1, 3, 5, 6)
    wanted = run_onnxruntime(small_network(), {"gpu_0/x:0": x})[0]
    module = load_model(str(path), {"gpu_0/x:0": (1, 3, 5, 6)})
    got = call(compile_functions({"f": module["main"]}), "f", x)[0]
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_missing_external_data_names_the_model_file(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save_model(
        small_network(), path, save_as_external_data=True, location="weights", size_threshold=0
    )
    (tmp_path / "weights").unlink()
    with pytest.raises(ModelError, match=r"model\.onnx"):
        load_model(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"absent\.onnx: no such file"):
        load_model(tmp_path / "absent.onnx")


def test_damaged_initializer_is_named():
    model = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", [3])], ["y"], {"w": normal(3)}
    )
    model.graph.initializer[0].raw_data = b"\0\0\0\0\0"
    with pytest.raises(ModelError, match="initialiser 'w' is damaged"):
        load_model(model)


def test_undefined_value_is_named_with_its_reader():
    model = make_model(
        [helper.make_node("Add", ["x", "ghost"], ["y"], name="sum")], [tensor("x", [3])], ["y"]
    )
    with pytest.raises(ModelError, match=r"node 'sum' \(Add\) reads 'ghost'"):
        load_model(model)


def test_failed_conversion_names_the_node():
    model = make_model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        [tensor("x", [2, 3])],
        ["y"],
        {"w": normal(4, 5)},
    )
    with pytest.raises(ModelError, match=r"node 'product' \(MatMul\) can't be converted"):
        load_model(model)


def test_params_bind_inputs_and_replace_initializers():
    model = make_model(
        [
            helper.make_node("Mul", ["x", "scale"], ["scaled"]),
            helper.make_node("Add", ["scaled", "shift"], ["y"]),
        ],
        [tensor("x", [3]), tensor("scale", ["n"])],
        ["y"],
        {"shift": normal(3)},
    )
    params = {"scale": np.full(3, 2, "float32"), "shift": np.full(3, 10, "float32")}
    module = load_model(model, params=params)
    assert [p.name for p in module["main"].params] == ["x"]
    got = call(compile_functions({"f": module["main"]}), "f", np.arange(3, dtype="float32"))[0]
    np.testing.assert_array_equal(got, [10, 12, 14])
    with pytest.raises(ModelError, match=r"unknown names \['z'\].*\['x', 'scale'\]"):
        load_model(model, params={"z": normal(3)})


def test_local_functions_are_expanded():
    function = helper.make_function(
        "com.example",
        "DoubleRelu",
        ["a"],
        ["b"],
        [helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Add", ["r", "r"], ["b"])],
        [helper.make_opsetid("", 18)],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.example", 1)]
    model = make_model(
        [helper.make_node("DoubleRelu", ["x"], ["y"], domain="com.example")],
        [tensor("x", [3])],
        ["y"],
        opset_imports=opsets,
        functions=[function],
    )
    assert calls(load_model(model)) == ["relax.nn.relu", "relax.add"]


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
    model = make_model(nodes, [tensor("x", ["n"])], ["y"], {"two": np.array([2])})
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
    inputs = [tensor("x", [3]), tensor("c", [], TensorProto.BOOL)]
    with pytest.raises(UnsupportedOperatorsError) as caught:
        load_model(make_model([node], inputs, ["y"]))
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
    module = load_model(make_model(nodes, [tensor("x", [2])], ["y"], constants))
    assert calls(module) == ["relax.multiply"]
    factor = module["main"].body.blocks[0].bindings[0].value.args[1]
    assert isinstance(factor, tvm.ir.GenericConst)
    assert factor.value.numpy().tolist() == [6.0]


def test_constant_output_and_passed_through_input():
    model = make_model(
        [helper.make_node("Shape", ["x"], ["size"]), helper.make_node("Identity", ["x"], ["same"])],
        [tensor("x", [2, 3])],
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
    model = make_model(nodes, [tensor("x", [3, 2])], ["y"], {"one": np.array(1)})
    x = normal(3, 2)
    got = call(compile_functions({"f": load_model(model)["main"]}), "f", x)[0]
    np.testing.assert_array_equal(got, x[1:2])
