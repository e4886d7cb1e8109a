"""Whole ONNX models: reading files, names, parameters and functions."""

from functools import partial

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from . import models
from .cases import call, calls, compile_functions, normal, run_onnxruntime

make_model = partial(models.make_model, opset=18)


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
    inputs = {"gpu_0/x:0": ("batch", 3, 5, 6)}
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
    weight = helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 3, 3, 3])
    model.graph.input.insert(0, weight)
    module = load_model(model, {"gpu_0/x:0": (1, 3, 5, 6)})
    assert [p.name for p in module["main"].params] == ["gpu_0/x:0"]


def test_dead_nodes_are_dropped_even_if_unsupported():
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Mystery", ["x"], ["unused"], domain="com.example"),
    ]
    assert calls(load_model(make_model(nodes, {"x": (3,)}, ["y"]))) == ["relax.nn.relu"]


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


def test_params_bind_inputs_and_replace_initializers():
    model = make_model(
        [
            helper.make_node("Mul", ["x", "scale"], ["scaled"]),
            helper.make_node("Add", ["scaled", "shift"], ["y"]),
        ],
        {"x": (3,), "scale": ("n",)},
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
    model = make_model(
        [helper.make_node("DoubleRelu", ["x"], ["y"], domain="com.example")],
        {"x": (3,)},
        ["y"],
        domains=["com.example"],
        functions=[function],
    )
    assert calls(load_model(model)) == ["relax.nn.relu", "relax.add"]
