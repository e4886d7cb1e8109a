"""Models on numbers other than float32, against ONNX Runtime: the same types, the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import tvm_ext
from tests import models
from tvm_ext.errors import CallError

INTEGERS = ("int8", "uint8", "int32", "int64")
Nodes = list[tuple[str, list[str], dict[str, Any]]]


def integers(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """All of an 8-bit type's values, and numbers beyond float64's 53 bits of an int64."""
    limits = np.iinfo(dtype) if dtype.endswith("8") else np.iinfo("int16")
    values = np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape)
    return (values * (2**40 + 1) if dtype == "int64" else values).astype(dtype)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def check(
    nodes: Nodes, inputs: dict[str, np.ndarray], weights: dict[str, Any], rtol: float = 0
) -> None:
    model = models.operators(nodes, inputs, weights)
    results = tvm_ext.build(model)(inputs)
    for (op, *_), ours, theirs in zip(nodes, results, models.oracle(model, inputs), strict=True):
        assert ours.dtype == theirs.dtype, op
        if not rtol:
            np.testing.assert_array_equal(ours, theirs, err_msg=op)
            continue
        scale = np.abs(theirs.astype("float64")).max()
        np.testing.assert_allclose(ours, theirs, rtol, rtol * scale, err_msg=op)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_and_movement(dtype: str) -> None:
    """Sums and products wrap around, quotients are rounded towards zero."""
    x, y = integers(dtype, 2, 3, 4), integers(dtype, 2, 3, 4, seed=1)
    three = np.array(3, dtype)
    nodes: Nodes = [
        ("Add", ["x", "y"], {}),
        ("Sub", ["x", "three"], {}),
        ("Mul", ["x", "y"], {}),
        ("Div", ["x", "three"], {}),
        ("Max", ["x", "y"], {}),
        ("Clip", ["x", "three", "hundred"], {}),
        ("Less", ["x", "y"], {}),
        ("Where", ["mask", "x", "y"], {}),
        ("Concat", ["x", "y"], {"axis": 1}),
        ("Transpose", ["x"], {"perm": [2, 0, 1]}),
        ("Reshape", ["x", "shape"], {}),
        ("Gather", ["x", "index"], {"axis": 2}),
        ("Cast", ["x"], {"to": TensorProto.FLOAT}),
    ]
    weights = {
        "three": three, "hundred": np.array(100, dtype), "shape": np.array([4, 6]),
        "index": np.array([3, 0, -1]),
    }  # fmt: skip
    check(nodes, {"x": x, "y": y, "mask": x > y}, weights)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_reductions_and_remainders_of_integers(dtype: str) -> None:
    x = integers(dtype, 5, 7) // 8  # ONNX Runtime adds 64-bit integers as doubles
    nodes: Nodes = [
        ("ReduceSum", ["x", "axis"], {}),
        ("ReduceMax", ["x", "axis"], {"keepdims": 0}),
        ("ArgMax", ["x"], {"axis": 1}),
        ("Mod", ["x", "seven"], {}),
        ("Abs", ["x"], {}),
        ("Neg", ["x"], {}),
        ("Sign", ["x"], {}),
    ]
    check(nodes, {"x": x}, {"axis": np.array([1]), "seven": np.array(7, dtype)})


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_means_and_norms_of_integers(dtype: str) -> None:
    """Both are rounded towards zero."""
    x = np.random.default_rng(0).integers(-100, 100, (5, 7)).astype(dtype)
    nodes: Nodes = [
        ("ReduceMean", ["x", "axis"], {}),
        ("ReduceMean", ["x"], {"keepdims": 0}),
        ("ReduceL2", ["x", "axis"], {}),
        ("ReduceLogSum", ["positive", "axis"], {}),
    ]
    check(nodes, {"x": x, "positive": np.abs(x)}, {"axis": np.array([1])})


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_linear_resize_of_integers(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 100, (1, 2, 5, 6)).astype(dtype)
    model = models.operators(
        [("Resize", ["x", "", "", "sizes"], {"mode": "linear"})],
        {"x": x},
        {"sizes": np.array([1, 2, 9, 4])},
    )
    ours, (theirs,) = tvm_ext.build(model)(x), models.oracle(model, {"x": x})
    assert ours.dtype == theirs.dtype
    # A sum of fractions that is just a whole number, or just not.
    assert np.abs(ours.astype("int64") - theirs).max() <= 1
    assert np.mean(ours != theirs) < 0.05


def test_unsigned_relu_and_shifts() -> None:
    x = np.array([0, 1, 127, 200, 255], "uint8")
    model = models.operators(
        [("Relu", ["x"], {}), ("BitShift", ["x", "by"], {"direction": "LEFT"})],
        {"x": x},
        {"by": np.array([0, 7, 8, 9, 255], "uint8")},
    )
    relu, shifted = tvm_ext.build(model)(x)
    np.testing.assert_array_equal(relu, x)
    np.testing.assert_array_equal(shifted, [0, 128, 0, 0, 0])


def test_casts_out_of_range() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 300, -300, 3e9, -3e9, 1e20, -1e20, 1.9, -0.9], "float32")
    types = ("INT8", "UINT8", "INT16", "INT32", "INT64")
    check([("Cast", ["x"], {"to": TensorProto.DataType.Value(t)}) for t in types], {"x": x}, {})


def test_activations_of_half_precision() -> None:
    """TVM's converters of some of these make float32 constants."""
    x = np.concatenate([floats(20), [-0.0, -20.0, 5.0]]).astype("float16")
    names = ("Elu", "Selu", "Softplus", "Mish")
    check([(op, ["x"], {}) for op in names], {"x": x}, {}, rtol=2e-3)


def test_activations_of_double_precision() -> None:
    """ONNX Runtime has some of them in float32 alone."""
    x = np.concatenate([floats(20), [-0.0, 1e-200, -1e-30, 1e-9, 0.3, -20.0, 40.0]])
    negative = np.expm1(x)
    scale, slope = 1.05070102214813232421875, 1.67326319217681884765625
    wanted = {
        "Elu": np.where(x < 0, negative, x),
        "Selu": scale * np.where(x < 0, slope * negative, x),
        "Softplus": np.logaddexp(0, x),
        "Mish": x * np.tanh(np.logaddexp(0, x)),
        "Tanh": np.tanh(x),
        "Sinh": np.sinh(x),
        "Asinh": np.arcsinh(x),
    }
    results = tvm_ext.build(models.operators([(op, ["x"], {}) for op in wanted], {"x": x}, {}))(x)
    for (op, want), ours in zip(wanted.items(), results, strict=True):
        np.testing.assert_allclose(ours, want, rtol=1e-13, atol=1e-15, err_msg=op)


def test_layer_normalization_in_double_precision() -> None:
    x, scale, shift = floats(4, 9), floats(9, seed=1), floats(9, seed=2)
    nodes: Nodes = [
        ("LayerNormalization", ["x", "scale"], {}),
        ("LayerNormalization", ["x", "scale", "shift"], {}),
    ]
    check(nodes, {"x": x}, {"scale": scale, "shift": shift}, rtol=1e-12)


def test_bytes_through_pools_and_products() -> None:
    u, i = integers("uint8", 1, 3, 6, 6), integers("int8", 1, 2, 5, 5)
    nodes: Nodes = [
        ("MaxPool", ["u"], {"kernel_shape": [2, 2]}),
        ("MaxPool", ["i"], {"kernel_shape": [3, 3], "pads": [1] * 4}),
        ("ConvInteger", ["u", "kernel"], {}),
        ("MatMulInteger", ["a", "b"], {}),
    ]
    weights = {"kernel": integers("uint8", 2, 3, 3, 3, seed=1), "b": integers("int8", 6, 4)}
    check(nodes, {"u": u, "i": i, "a": integers("int8", 5, 6, seed=2)}, weights)


def test_bytes_of_an_image_become_floats_and_bytes_again() -> None:
    image = integers("uint8", 1, 3, 9, 9)
    model = models.operators(
        [
            ("Cast", ["image"], {"to": TensorProto.FLOAT}),
            ("Mul", ["y0", "half"], {}),
            ("Conv", ["y1", "kernel"], {}),
            ("Cast", ["y1"], {"to": TensorProto.UINT8}),
        ],
        {"image": image},
        {"half": np.float32(0.5), "kernel": floats(4, 3, 3, 3).astype("float32")},
    )
    ours, theirs = tvm_ext.build(model)(image), models.oracle(model, {"image": image})
    np.testing.assert_array_equal(ours[3], image // 2)
    assert models.relative_error(ours[2], theirs[2]) < models.RTOL


def test_booleans() -> None:
    p, q = np.random.default_rng(0).integers(0, 2, (2, 3, 5)).astype(bool)
    x = floats(3, 5).astype("float32")
    x[0, :3] = np.nan, 0.0, -0.0
    nodes: Nodes = [
        ("Not", ["p"], {}),
        ("And", ["p", "q"], {}),
        ("Or", ["p", "q"], {}),
        ("Xor", ["p", "q"], {}),
        ("Where", ["p", "x", "zero"], {}),
        ("Cast", ["p"], {"to": TensorProto.FLOAT}),
        ("Cast", ["x"], {"to": TensorProto.BOOL}),
        ("Cast", ["n"], {"to": TensorProto.BOOL}),
        ("Concat", ["p", "q"], {"axis": 0}),
    ]
    inputs = {"p": p, "q": q, "x": x, "n": np.array([0, 1, 2, -3, 256])}
    check(nodes, inputs, {"zero": np.float32(0)})


def test_equality_of_booleans() -> None:
    p, q = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    model = models.operators([("Equal", ["p", "q"], {})], {"p": p, "q": q}, {})
    np.testing.assert_array_equal(tvm_ext.build(model)([p, q]), p == q)


def test_half_precision() -> None:
    x, w = floats(1, 4, 6, 6).astype("float16"), floats(5, 4, 3, 3, seed=1).astype("float16")
    nodes: Nodes = [
        ("Conv", ["x", "w"], {}),
        ("MatMul", ["x", "m"], {}),
        ("MaxPool", ["x"], {"kernel_shape": [2, 2]}),
        ("GlobalAveragePool", ["x"], {}),
        ("Softmax", ["x"], {}),
        ("Add", ["x", "x"], {}),
        ("Exp", ["x"], {}),
        ("Gelu", ["x"], {}),
        ("Cast", ["x"], {"to": TensorProto.FLOAT}),
    ]
    weights = {"w": w, "m": floats(6, 3, seed=2).astype("float16")}
    check(nodes, {"x": x}, weights, rtol=2e-3)


def test_special_values_in_half_precision() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 65504, -65504, 6e-8, -0.0, 1e-4], "float16")
    names = ("Exp", "Tanh", "Sigmoid", "Sqrt", "Relu", "Erf", "Gelu", "Abs", "Log", "Softplus")
    model = models.operators([(op, ["x"], {}) for op in names], {"x": x}, {})
    results = zip(names, tvm_ext.build(model)(x), models.oracle(model, {"x": x}), strict=True)
    for op, ours, theirs in results:
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=6e-8, err_msg=op)


def test_double_precision() -> None:
    x = floats(3, 7)
    nodes: Nodes = [
        *((op, ["x"], {}) for op in ("Exp", "Tanh", "Sigmoid", "Sqrt", "Relu", "Log")),
        ("Add", ["x", "tiny"], {}),
        ("MatMul", ["x", "w"], {}),
    ]
    # What float32 would lose beside numbers around one.
    weights = {"tiny": np.array(1e-12), "w": floats(7, 4, seed=1)}
    check(nodes, {"x": np.abs(x)}, weights, rtol=1e-13)


@pytest.mark.parametrize("given", ["float64", "int32", "uint8"])
def test_inputs_are_not_converted(given: str) -> None:
    model = models.operators([("Add", ["x", "x"], {})], {"x": np.zeros(3, "int64")}, {})
    executable = tvm_ext.build(model)
    with pytest.raises(CallError, match=f"'x' has dtype {given}; allowed: int64"):
        executable(np.zeros(3, given))
