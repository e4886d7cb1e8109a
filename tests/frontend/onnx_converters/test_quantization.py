"""Quantised operators against ONNX Runtime, equal to the last bit."""

import numpy as np
import pytest

from tvm_ext.frontend import load_model

from ..cases import Case, Cases, call, compile_functions, normal


def integers(*shape, dtype="uint8", seed=0):
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape, dtype)


def f(*values):
    return np.array(values if len(values) > 1 else values[0], "float32")


# On CPUs without VNNI, ONNX Runtime's sums of uint8 x int8 saturate at 16 bits; with weights of
# 7 bits they're exact everywhere. The full range is checked against numpy below.
X, W = integers(2, 4, 7, 5), integers(6, 4, 3, 2, dtype="int8", seed=1) // 2
U128 = np.array(128, "uint8")
CHANNELS = np.abs(normal(6, seed=3)).astype("float32") * 0.01 + 0.002
A, B = integers(5, 7), integers(7, 3, dtype="int8", seed=1) // 2
ATTRS = {"pads": [1, 0, 1, 1], "strides": [2, 1]}
REAL = normal(2, 6, 5) * 4


def qlinear_conv(name, x_zero, w_scale, w_zero, y_zero, bias=None, **attrs):
    w = attrs.pop("w", W)
    inputs = [X, f(0.02), x_zero, w, w_scale, w_zero, f(0.15), y_zero, bias]
    return Case(name, "QLinearConv", inputs, {**ATTRS, **attrs}, rtol=0)


CASES = Cases(
    [
        qlinear_conv("conv", U128, f(0.01), np.array(0, "int8"), np.array(100, "uint8")),
        qlinear_conv(
            "conv_channels",
            np.array(13, "uint8"),
            CHANNELS,
            np.zeros(6, "int8"),
            U128,
            bias=integers(6, dtype="int16").astype("int32"),
        ),
        qlinear_conv(
            "conv_grouped",
            U128,
            f(0.01),
            np.array(0, "int8"),
            U128,
            w=integers(6, 2, 3, 3, dtype="int8") // 2,
            group=2,
        ),
        Case(
            "conv_integer", "ConvInteger", [X, W.view("uint8"), U128, np.array(3, "uint8")], ATTRS
        ),
        Case("conv_integer_no_zeros", "ConvInteger", [X, W.view("uint8")]),
        Case(
            "matmul_integer", "MatMulInteger", [A, B, np.array(11, "uint8"), np.array(-3, "int8")]
        ),
        Case("matmul_integer_no_zeros", "MatMulInteger", [A, B]),
        Case(
            "matmul_integer_columns",
            "MatMulInteger",
            [A, B, np.array(11, "uint8"), np.array([1, -2, 3], "int8")],
        ),
        Case("matmul_integer_at_run_time", "MatMulInteger", [A, B, U128], runtime=(0, 1, 2)),
        Case(
            "qlinear_matmul",
            "QLinearMatMul",
            [A, f(0.02), U128, B, f(0.03), np.array(4, "int8"), f(0.4), np.array(99, "uint8")],
            rtol=0,
        ),
        Case(
            "qlinear_matmul_columns",
            "QLinearMatMul",
            [A, f(0.02), U128, B, CHANNELS[:3], np.zeros(3, "int8"), f(0.1), np.array(99, "uint8")],
            rtol=0,
        ),
        Case("quantize", "QuantizeLinear", [REAL, f(0.03), np.array(120, "uint8")]),
        Case("quantize_default", "QuantizeLinear", [REAL, f(0.03)]),
        # Exact halves: they round to even.
        Case("quantize_ties", "QuantizeLinear", [f(-1.5, -0.5, 0.5, 1.5, 2.5), f(1.0), U128]),
        Case(
            "quantize_axis",
            "QuantizeLinear",
            [REAL, CHANNELS, np.arange(6, dtype="int8")],
            {"axis": 1},
        ),
        Case("dequantize", "DequantizeLinear", [A, f(0.03), np.array(120, "uint8")]),
        Case(
            "dequantize_axis",
            "DequantizeLinear",
            [integers(2, 6, 5, dtype="int8"), CHANNELS, np.arange(6, dtype="int8")],
            {"axis": -2},
        ),
        Case(
            "dequantize_int32",
            "DequantizeLinear",
            [integers(9, dtype="int16").astype("int32"), f(0.5)],
        ),
        Case("dynamic", "DynamicQuantizeLinear", [REAL], outputs=3),
        Case("dynamic_positive", "DynamicQuantizeLinear", [np.abs(REAL) + 1], outputs=3),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


def test_full_range_sums_are_exact():
    a, b = np.full((2, 9), 255, "uint8"), np.full((9, 3), 127, "int8")
    case = Case("full", "MatMulInteger", [a, b, np.array(0, "uint8"), np.array(-128, "int8")])
    vm = compile_functions({"f": load_model(case.model())["main"]})
    np.testing.assert_array_equal(call(vm, "f", a)[0], np.full((2, 3), 9 * 255 * 255, "int32"))
