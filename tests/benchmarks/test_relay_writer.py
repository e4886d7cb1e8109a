"""Networks written as Relay texts: what is read back is the same network."""

from collections import Counter

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_ext
from benchmarks.relay_writer import RelayWriteError, write_relay
from tests.frontend.cases import calls, run_onnxruntime
from tvm_ext.frontend.relay.params import read_relay_params
from tvm_ext.frontend.relay.read import read_relay_text


def network(last="Softmax"):
    """Every operator that the writer knows."""
    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.normal(size=(4, 3, 3, 3)),
        **{name: rng.random(4) + 0.5 for name in ("scale", "shift", "mean", "var")},
        "low": np.array(-0.5),
        "high": np.array(0.5),
        "flat": np.array([1, 72]),
        "fc": rng.normal(size=(72, 5)) / 8,
        "bias": rng.normal(size=5),
        "square": np.array(2.0),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Clip", ["n", "low", "high"], ["k"]),
        helper.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[1, 1]),
        helper.make_node("AveragePool", ["k"], ["a"], kernel_shape=[2, 2], count_include_pad=1),
        helper.make_node("Mul", ["m", "a"], ["p"]),
        helper.make_node("Concat", ["p", "a"], ["j"], axis=1),
        helper.make_node("Pow", ["j", "square"], ["q"]),
        helper.make_node("Div", ["q", "square"], ["d"]),
        helper.make_node("Reshape", ["d", "flat"], ["f"]),
        helper.make_node("MatMul", ["f", "fc"], ["g"]),
        helper.make_node("Add", ["g", "bias"], ["h"]),
        helper.make_node(last, ["h"], ["y"]),
    ]
    weights = [
        numpy_helper.from_array(a.astype("int64" if name == "flat" else "float32"), name)
        for name, a in arrays.items()
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 7, 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def test_what_is_read_back_is_the_network(tmp_path):
    model = network()
    original = tvm_ext.load_model(model)
    text, params = write_relay(original, tmp_path)
    module = tvm_ext.load_model(text, params=params)
    assert Counter(calls(module)) == Counter(calls(original))
    x = np.random.default_rng(1).normal(size=(1, 3, 7, 7)).astype("float32")
    (expected,) = run_onnxruntime(model, {"x": x})
    np.testing.assert_allclose(tvm_ext.build(module)(x), expected, rtol=1e-4, atol=1e-5)


def test_weights_are_parameters(tmp_path):
    text, params = write_relay(tvm_ext.load_model(network()), tmp_path)
    names = [var.name for var in read_relay_text(text).functions["main"].params]
    assert names == ["x", *read_relay_params(params)]


def test_pools_over_channels_are_read_back(tmp_path):
    node = helper.make_node("LRN", ["x"], ["y"], size=3, alpha=0.5)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 5, 4, 7]) for n in "xy"]
    graph = helper.make_graph([node], "network", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    text, params = write_relay(tvm_ext.load_model(model), tmp_path)
    module = tvm_ext.load_model(text, params=params)
    x = np.random.default_rng(1).normal(size=(1, 5, 4, 7)).astype("float32")
    (expected,) = run_onnxruntime(model, {"x": x})
    np.testing.assert_allclose(tvm_ext.build(module)(x), expected, rtol=1e-5, atol=1e-6)


def test_other_operators_are_refused(tmp_path):
    with pytest.raises(RelayWriteError, match=r"relax\.sigmoid can't be written; allowed are"):
        write_relay(tvm_ext.load_model(network("Sigmoid")), tmp_path)
