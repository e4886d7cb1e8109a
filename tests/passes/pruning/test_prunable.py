"""Finding layers and replacing their weights, against ONNX Runtime and TVM's own pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import helper, numpy_helper
from relax_models import array, const, module, run
from tvm import relax

from passes.pruning import networks
from tvm_ext.errors import PruningError
from tvm_ext.frontend import load_model
from tvm_ext.passes import FoldConstants
from tvm_ext.passes.pruning import prunables, replace_weights


def _onnx_runtime(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"x": x})[0]


def _with_initializers(model: onnx.ModelProto, new: dict[str, np.ndarray]) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        if tensor.name in new:
            tensor.CopyFrom(numpy_helper.from_array(new[tensor.name], tensor.name))
    return changed


def test_layers_come_in_order_with_their_weights() -> None:
    mod = networks.convolutions()
    layers = prunables(mod)
    assert [(x.kind, x.weights.shape) for x in layers] == [
        ("conv", (8, 3, 3, 3)), ("conv", (8, 1, 3, 3)), ("conv", (12, 4, 3, 3)),
        ("conv", (20, 12, 1, 1)), ("matmul", (10, 20)),
    ]  # fmt: skip
    np.testing.assert_array_equal(layers[0].weights, array(0, 8, 3, 3, 3))
    np.testing.assert_array_equal(layers[4].weights, array(4, 20, 10).T)
    # 8 x 8 positions, each of filters times inputs of one times taps.
    counts = [64 * 8 * 27, 64 * 8 * 9, 64 * 12 * 36, 64 * 20 * 12, 200]
    assert [x.macs for x in layers] == counts


@pytest.mark.parametrize("dims", [1, 3])
def test_convolutions_of_other_dimensions(dims: int) -> None:
    w = array(0, 4, 2, *[3] * dims)
    convolve = {1: relax.op.nn.conv1d, 3: relax.op.nn.conv3d}[dims]
    shape = (1, 2, *[5] * dims)
    (layer,) = prunables(module({"x": shape}, lambda emit, x: convolve(x, const(w))))
    assert layer.weights.shape == w.shape
    assert layer.macs == 3**dims * w.size


def test_kernels_in_another_order_are_seen_filters_first() -> None:
    w = array(0, 3, 2, 4, 5)

    def body(emit: Any, x: Any) -> Any:
        return relax.op.nn.conv2d(x, const(w), data_layout="NHWC", kernel_layout="HWIO")

    mod = module({"x": (1, 6, 6, 4)}, body)
    (layer,) = prunables(mod)
    np.testing.assert_array_equal(layer.weights, w.transpose(3, 2, 0, 1))
    new = replace_weights(mod, {layer.name: 2 * layer.weights})
    np.testing.assert_array_equal(prunables(new)[0].weights, 2 * w.transpose(3, 2, 0, 1))


def test_a_transposed_matrix_is_a_layer() -> None:
    w, x = array(0, 7, 5), array(1, 3, 5)

    def body(emit: Any, data: Any) -> Any:
        return relax.op.matmul(data, emit(relax.op.permute_dims(const(w), [1, 0])))

    mod = module({"x": (3, 5)}, body)
    (layer,) = prunables(mod)
    np.testing.assert_array_equal(layer.weights, w)
    kept = np.where(w > 0, w, 0)
    new = replace_weights(mod, {layer.name: kept})
    np.testing.assert_allclose(run(new, x), x.astype("f8") @ kept.T, rtol=1e-5, atol=1e-5)


def test_what_is_no_constant_matrix_of_numbers_is_left_out() -> None:
    def body(emit: Any, x: Any) -> Any:
        x = emit(relax.op.matmul(x, emit(relax.op.permute_dims(x, [0, 2, 1]))))
        x = emit(relax.op.matmul(x, const(array(0, 1, 4, 4))))
        whole = emit(relax.op.astype(x, "int8"))
        whole = emit(relax.op.matmul(whole, const(np.ones((4, 4), "int8"))))
        folded = emit(relax.op.matmul(const(array(1, 4, 4)), const(array(2, 4, 4))))
        return relax.op.add(emit(relax.op.astype(whole, "float32")), folded)

    assert prunables(module({"x": (1, 4, 4)}, body)) == []


@pytest.mark.parametrize("bias", [False, True])
def test_layers_from_onnx_have_the_names_of_their_results(bias: bool) -> None:
    weights = {"w": array(0, 4, 3, 1, 1), "m": array(1, 4, 5), "c": array(2, 5)}
    inputs = ["x", "w"]
    if bias:
        weights["b"] = array(3, 4)
        inputs.append("b")
    nodes = [
        helper.make_node("Conv", inputs, ["stem/conv"]),
        helper.make_node("ReduceMean", ["stem/conv"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("Gemm", ["mean", "m", "c"], ["y"]),
    ]
    mod = load_model(networks.onnx_model(nodes, (1, 3, 2, 2), weights))
    assert [x.name for x in prunables(mod)] == ["stem_conv", "y"]
    # A pass that rebuilds the function returns copies of its results.
    assert [x.name for x in prunables(FoldConstants()(mod))] == ["stem_conv", "y"]


def test_names_stay_when_weights_are_replaced() -> None:
    mod = networks.convolutions()
    names = [x.name for x in prunables(mod)]
    new = replace_weights(mod, {x.name: 0 * x.weights + i for i, x in enumerate(prunables(mod))})
    again = prunables(new)
    assert [x.name for x in again] == names
    assert [x.weights.max() for x in again] == [0, 1, 2, 3, 4]


def test_the_gates_of_an_lstm_are_two_layers_whose_every_use_is_replaced() -> None:
    model = networks.lstm()
    mod = load_model(model)
    layers = prunables(mod)
    assert [(x.weights.shape, len(x.uses)) for x in layers] == [((16, 5), 1), ((16, 4), 3)]
    # The first step multiplies a state of zeros, which is folded.
    assert [x.macs for x in layers] == [3 * 80, 2 * 64]
    w, r = (np.where(np.abs(x.weights) > 0.7, x.weights, 0) for x in layers)
    new = replace_weights(mod, {layers[0].name: w, layers[1].name: r})
    x = array(9, 3, 1, 5)
    expected = _onnx_runtime(_with_initializers(model, {"w": w[None], "r": r[None]}), x)
    np.testing.assert_allclose(run(new, x), expected, rtol=1e-5, atol=1e-6)


def test_the_gates_of_a_gru_are_three_layers() -> None:
    model = networks.gru()
    mod = load_model(model)
    layers = prunables(mod)
    shapes = [(x.weights.shape, len(x.uses)) for x in layers]
    assert shapes == [((12, 5), 1), ((8, 4), 3), ((4, 4), 3)]
    kept = {x.name: np.where(x.weights > 0, x.weights, 0) for x in layers}
    parts = list(kept.values())
    changed = {"w": parts[0][None], "r": np.concatenate(parts[1:])[None]}
    x = array(9, 3, 1, 5)
    expected = _onnx_runtime(_with_initializers(model, changed), x)
    np.testing.assert_allclose(run(replace_weights(mod, kept), x), expected, rtol=1e-5, atol=1e-6)


def test_half_precision_stays() -> None:
    w = array(0, 4, 3).astype("float16")
    mod = module({"x": (2, 4)}, lambda emit, x: relax.op.matmul(x, const(w)), "float16")
    (layer,) = prunables(mod)
    (new,) = prunables(replace_weights(mod, {layer.name: layer.weights.astype("float64") / 2}))
    assert new.weights.dtype == np.float16
    np.testing.assert_array_equal(new.weights, w.T / 2)


def test_attributes_of_the_module_stay() -> None:
    mod = load_model(networks.lstm())
    new = replace_weights(mod, {x.name: x.weights for x in prunables(mod)})
    assert dict(new["main"].attrs) == dict(mod["main"].attrs)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"conv": np.ones(1)}, "layer 'conv' isn't there; the model has lv"),
        ({"lv": np.ones((3, 8, 3, 3))}, r"layer lv: weights of shape \(3, 8, 3, 3\); it has"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights: dict[str, Any], message: str) -> None:
    with pytest.raises(PruningError, match=message):
        replace_weights(networks.convolutions(), weights)


def test_layers_of_one_name_are_told_apart() -> None:
    x = relax.Var("x", relax.TensorType([2, 4], "float32"))
    y, z = (relax.DataflowVar("fc", relax.TensorType([2, 4], "float32")) for _ in range(2))
    out = relax.Var("out", relax.TensorType([2, 4], "float32"))
    block = relax.DataflowBlock(
        [
            relax.VarBinding(y, relax.op.matmul(x, const(array(0, 4, 4)))),
            relax.VarBinding(z, relax.op.matmul(y, const(array(1, 4, 4)))),
            relax.VarBinding(out, relax.op.nn.relu(z)),
        ]
    )
    function = relax.Function([x], relax.SeqExpr([block], out), out.ty)
    mod = relax.transform.Normalize()(tvm.IRModule({"main": function}))
    assert [layer.name for layer in prunables(mod)] == ["fc", "fc_1"]
