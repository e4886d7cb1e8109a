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
