"""What `OutlineQuantized` makes of `main`, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from tests import models
from tests.codegen.qdq_models import QdqModel
from tests.codegen.quantized_cnns import quantized_model
from tvm_ext.frontend import load_model
from tvm_ext.passes import dataflow as df
from tvm_ext.quantized import OutlineQuantized, quantized_function
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.quantized_workload import (
    QuantizedConvWorkload,
    QuantizedMatmulWorkload,
    QuantizedPoolWorkload,
    Requantization,
)
from tvm_ext.schedules.workload import ElementwiseWorkload


def outlined(model: QdqModel) -> tvm.IRModule:
    return OutlineQuantized()(load_model(model.model()))


def called(mod: tvm.IRModule) -> list[relax.Function]:
    """The functions that `main` calls, in order."""
    calls = [value for _, value in df.bindings(mod["main"]) if isinstance(value, relax.Call)]
    return [mod[call.op] for call in calls if isinstance(call.op, tvm.ir.GlobalVar)]


def operators(function: relax.Function) -> list[str]:
    return [df.op_name(value).removeprefix("relax.") for _, value in df.bindings(function)]


def convolution(dtype: str = "uint8") -> QdqModel:
    m = QdqModel(dtype)
    x = m.input("x", (2, 3, 9, 8), 0.05, 7)
    w = m.weight((5, 3, 3, 3))
    y = m.node("Conv", [x, w, m.bias(x, w, 5)], "sum", pads=[1, 1, 0, 1], strides=[2, 1])
    m.output(m.op("Relu", [y], 0.1, 9))
    return m


def test_a_convolution_becomes_one_function_of_the_models_operators() -> None:
    (function,) = called(outlined(convolution()))
    names = operators(function)
    assert names[-1] == "quantize"
    assert {"nn.conv2d", "nn.relu", "dequantize", "add"} <= set(names)
    assert bool(function.attrs["Primitive"])
    layer = quantized_function(function)
    assert layer is not None
    assert layer.workload == QuantizedConvWorkload(
        2, 3, (9, 8), 5, (3, 3), (2, 1), (1, 1), (0, 1), (1, 1), 7, Requantization(9, 9, 255),
        "uint8",
    )  # fmt: skip
    assert [(w.shape, str(w.dtype)) for w in layer.weights] == [
        ((5, 3, 3, 3), "int8"), ((5,), "int32"), ((5,), "float32"),
    ]  # fmt: skip


def test_int8_tensors_keep_their_zero_points() -> None:
    (function,) = called(outlined(convolution("int8")))
    layer = quantized_function(function)
    assert layer is not None
    assert (layer.workload.x_zero, layer.workload.dtype) == (7, "int8")
    assert layer.workload.result == Requantization(9, 9, 127)


def test_the_function_itself_computes_the_layer() -> None:
    """TVM's own operators are at most a step off the integers."""
    mod = outlined(convolution())
    x = np.random.default_rng(0).integers(0, 256, (2, 3, 9, 8)).astype("uint8")
    found, expected = (
        relax.VirtualMachine(tvm.compile(m, "llvm"), tvm.cpu())["main"](tvm.runtime.tensor(x))
        for m in (mod, load_model(convolution().model()))
    )
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_a_whole_network_is_calls_and_views() -> None:
    for form in ("QDQ", "QOperator"):
        mod = OutlineQuantized()(load_model(quantized_model(form, "uint8")))
        layers = [quantized_function(f) for f in called(mod)]
        kinds = [type(layer.workload) for layer in layers if layer is not None]
        assert kinds == [
            *[QuantizedConvWorkload] * 4, ElementwiseWorkload, QuantizedPoolWorkload,
            QuantizedConvWorkload, QuantizedPoolWorkload, QuantizedMatmulWorkload,
        ]  # fmt: skip
        rest = [df.op_name(v) for _, v in df.bindings(mod["main"]) if df.op_name(v)]
        assert rest == ["relax.quantize", "relax.reshape", "relax.dequantize"]


def test_a_sum_is_steps_on_both_operands() -> None:
    m = QdqModel("int8")
    a, b = m.input("a", (1, 2, 3, 4), 0.5, 0), m.input("b", (1, 2, 3, 4), 0.25, 0)
    m.output(m.op("Add", [a, b], 1.0, 0))
    (function,) = called(outlined(m))
    layer = quantized_function(function)
    assert layer is not None
    f32 = "float32"
    assert layer.workload == ElementwiseWorkload(
        (1, 2, 3, 4), "int8",
        Epilogue(
            (
                Step("cast", (("operand", 1),), (), f32),
                Step("multiply", (("value", 0), ("const", 0.25)), (), f32),
                Step("add", (("value", 1), ("const", 0.0)), (), f32),
                Step("cast", (("operand", 0),), (), f32),
                Step("multiply", (("value", 3), ("const", 0.5)), (), f32),
                Step("add", (("value", 4), ("value", 2)), (), f32),
                Step("round", (("value", 5),), (), f32),
                Step("clip", (("value", 6),), (-128.0, 127.0), f32),
                Step("narrow", (("value", 7),), (), "int8"),
            ),
            (Operand((1, 2, 3, 4), "int8"),) * 2, 0,
        ),
    )  # fmt: skip


def test_other_models_and_operators_stay() -> None:
    mod = load_model(models.convnet())
    assert OutlineQuantized()(mod).same_as(mod)
    m = QdqModel("uint8")
    x = m.input("x", (1, 2, 8, 8))
    m.output(m.op("AveragePool", [x], kernel_shape=[3, 3]))
    assert refused(m) == ["no kernel of integers for averages that aren't global"]
    m = convolution()
    m.raw_output("sum")
    (reason,) = refused(m)
    assert reason.endswith("is read by 2 operators; allowed: quantising alone")


def refused(model: QdqModel) -> list[str]:
    """The reasons for which nothing of a model is outlined."""
    outline = OutlineQuantized()
    assert not called(outline(load_model(model.model())))
    return [refusal.reason for refusal in outline.refusals]
