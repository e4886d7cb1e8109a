"""Quantised models that `build` compiles for the CPU have ONNX Runtime's bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

import tvm_ext
from tests.codegen.qdq_models import (
    QdqModel,
    onnxruntime_results,
    random_integers,
)
from tests.codegen.quantized_cnns import images, quantized_model
from tvm_ext.plan import Plan

DTYPES = ["int8", "uint8"]


def results(model: onnx.ModelProto, inputs: dict[str, np.ndarray], **options: Any) -> Any:
    found = tvm_ext.build(model, **options)(inputs)
    return found if isinstance(found, list) else [found]


def assert_same_bits(model: onnx.ModelProto) -> None:
    """Every value of the input type, and results that are spread over theirs."""
    inputs = random_integers(model)
    expected = onnxruntime_results(model, inputs)
    for ours, theirs in zip(results(model, inputs), expected, strict=True):
        assert len(np.unique(theirs)) > min(60, theirs.size // 2)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("form", "activations", "per_channel"),
    [
        ("QDQ", "uint8", True), ("QDQ", "int8", False), ("QOperator", "uint8", False),
        ("QOperator", "int8", True),
    ],
)  # fmt: skip
def test_small_network(form: str, activations: str, per_channel: bool) -> None:
    model = quantized_model(form, activations, per_channel)
    given = {"x": images(1, seed=3)[0]}
    (found,), (expected,) = results(model, given), onnxruntime_results(model, given)
    assert len(np.unique(expected)) > 5
    np.testing.assert_array_equal(found, expected)


def test_plan_of_the_small_network_stays_in_channel_blocks() -> None:
    plan = tvm_ext.plan(quantized_model("QDQ", "uint8"))
    algorithms = [entry.algorithm for entry in plan]
    assert algorithms == [
        "elementwise", "int8_spatial_pack", "int8_spatial_pack", "int8_depthwise",
        "int8_spatial_pack", "elementwise", "int8_pool", "int8_spatial_pack", "int8_pool", "view",
        "int8_gemm", "elementwise",
    ]  # fmt: skip
    names = [entry.name for entry in plan]
    assert names[1] == "quantized_conv2d_0"
    inner = [entry.layout for entry in plan if entry.algorithm in ("elementwise", "int8_pool")]
    # The first and the last one are the conversions of the model's input and output.
    assert all(a == b and a.endswith("c") for a, b in inner[1:-1])


def test_a_plan_may_name_tvms_own_operators() -> None:
    model, given = quantized_model("QOperator", "uint8"), {"x": images(1, seed=3)[0]}
    plan = Plan.from_yaml(tvm_ext.plan(model).to_yaml())
    generic = {"algorithm": "generic", "params": {}, "layout": ["plain", "plain"]}
    entries = [replace(e, **generic) if "matmul" in e.name else e for e in plan]
    (found,) = results(model, given, plan=replace(plan, layers=entries))
    np.testing.assert_array_equal(found, onnxruntime_results(model, given)[0])


@pytest.mark.parametrize("zeros", [(3, 20, 5), (0, 0, 0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_and_products_of_every_pair(dtype: str, zeros: tuple[int, int, int]) -> None:
    m = QdqModel(dtype)
    shape = (1, 16, 64, 64)
    a, b = m.input("a", shape, 0.05, zeros[0]), m.input("b", shape, 0.03, zeros[1])
    m.output(m.op("Add", [a, b], 0.07, zeros[2]))
    m.output(m.op("Mul", [a, b], 0.09, zeros[2]))
    model, values = m.model(), np.arange(256, dtype="uint8").view(dtype)
    inputs = {"a": np.repeat(values, 256).reshape(shape), "b": np.tile(values, 256).reshape(shape)}
    expected = onnxruntime_results(model, inputs)
    for ours, theirs in zip(results(model, inputs), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_clamps_and_other_scales(dtype: str) -> None:
    m, zero = QdqModel(dtype), {"int8": 3, "uint8": 130}[dtype]
    x = m.input("x", (2, 5, 6, 7), 0.05, zero)
    m.output(m.op("Relu", [x], 0.05, zero))
    m.output(m.dequantize(m.quantize(x, 0.031, 11), 0.031, 11))
    pads = {"strides": [2, 1], "pads": [1, 1, 1, 0]}
    m.output(m.op("MaxPool", [x], 0.05, zero, kernel_shape=[3, 2], **pads))
    m.output(m.op("GlobalAveragePool", [x], 0.02, zero))
    assert_same_bits(m.model())


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_with_a_shortcut(dtype: str) -> None:
    """A residual block, a strided shortcut, an odd number of channels, batch 2, dilation."""
    m = QdqModel(dtype)
    x = m.input("x", (2, 19, 11, 10), 0.05, 3)

    def conv(data: str, inputs: int, filters: int, size: int, **attributes: Any) -> str:
        w = m.weight((filters, inputs, size, size), high=0.005)
        return m.op("Conv", [data, w, m.bias(data, w, filters)], 0.06, 5, **attributes)

    y = conv(x, 19, 33, 3, pads=[2, 2, 2, 2], dilations=[2, 2], strides=[2, 2])
    z = m.op("Add", [conv(y, 33, 33, 1), conv(x, 19, 33, 1, strides=[2, 2])], 0.08, 1)
    m.output(m.op("Relu", [z], 0.08, 1))
    assert_same_bits(m.model())


@pytest.mark.parametrize("dtype", DTYPES)
def test_moves_of_integers(dtype: str) -> None:
    m = QdqModel(dtype)
    a, b = m.input("a", (1, 7, 3, 4), 0.05, 3), m.input("b", (1, 5, 3, 4), 0.05, 3)
    m.output(m.op("Concat", [a, b], 0.05, 3, axis=1))
    m.output(m.op("Flatten", [a], 0.05, 3))
    model = m.model()
    assert {entry.algorithm for entry in tvm_ext.plan(model)} == {"concat", "view"}
    assert_same_bits(model)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_at_the_border(dtype: str) -> None:
    """Real inputs and outputs, ties and values past the limits among them."""
    m = QdqModel(dtype)
    m.inputs.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 3, 5, 67)))
    m.node("Identity", [m.dequantize(m.quantize("x", 0.5, 3), 0.5, 3)], "y")
    m.raw_output("y")
    model = m.model()
    assert {entry.algorithm for entry in tvm_ext.plan(model)} == {"elementwise"}
    given = {"x": np.linspace(-150, 150, 1005, dtype="float32").reshape(1, 3, 5, 67)}
    given["x"][0, 0] = np.arange(335).reshape(5, 67) / 4 - 40
    (found,), (expected,) = results(model, given), onnxruntime_results(model, given)
    np.testing.assert_array_equal(found, expected)


def test_products_of_rows() -> None:
    m = QdqModel("uint8")
    x = m.input("x", (9, 21), 0.05, 3)
    w = m.weight((21, 18), axis=1, high=0.01)
    m.output(m.op("MatMul", [x, w], 0.06, 5))
    assert_same_bits(m.model())
