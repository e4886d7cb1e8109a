"""NaN, infinities, signed zeros and subnormal numbers through compiled models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm_ext
from tests import models

RTOL = 1e-5
# Subnormal numbers are multiples of this; sums of some of them are off by a few.
QUANTUM = float(np.finfo("float32").smallest_subnormal)
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 3.4e38, -3.4e38, 1.0, -1.5, 0.3, -20.0],
    "float32",
)
Nodes = list[tuple[str, list[str], dict[str, Any]]]


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def both(
    nodes: Nodes, inputs: dict[str, np.ndarray], weights: dict[str, np.ndarray] | None = None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each operator ours and ONNX Runtime's result."""
    model = models.operators(nodes, inputs, weights or {})
    ours = tvm_ext.build(model)(inputs)
    ours = ours if isinstance(ours, list) else [ours]
    keys = [f"{i} {op}" for i, (op, _, _) in enumerate(nodes)]
    return dict(zip(keys, zip(ours, models.oracle(model, inputs), strict=True), strict=True))


def agree(results: dict[str, tuple[np.ndarray, np.ndarray]], atol: float) -> None:
    for key, (ours, theirs) in results.items():
        assert ours.dtype == theirs.dtype, key
        np.testing.assert_allclose(ours, theirs, rtol=RTOL, atol=atol, err_msg=key)


# Kernels 5x5, 1x1 and strided 3x3: none for Winograd, whose tiles share their special values.
WEIGHTS = {
    "five": floats(6, 5, 5, 5, seed=1), "one": floats(6, 5, 1, 1, seed=2),
    "strided": floats(20, 5, 3, 3, seed=3), "depthwise": floats(5, 1, 3, 3, seed=4),
    "transposed": floats(5, 4, 3, 3, seed=5),
}  # fmt: skip
CONVOLUTIONS: Nodes = [
    ("Conv", ["x", "five"], {"pads": [2] * 4}),
    ("Conv", ["x", "one"], {}),
    ("Conv", ["x", "strided"], {"pads": [1] * 4, "strides": [2, 2]}),
    ("Conv", ["x", "depthwise"], {"pads": [1] * 4, "group": 5}),
    ("ConvTranspose", ["x", "transposed"], {"strides": [2, 2]}),
]


def test_convolutions_keep_special_values_in_their_windows() -> None:
    x = floats(1, 5, 9, 11)
    x[0, 0, 0, 0], x[0, 1, 4, 5], x[0, 4, 8, 10] = np.nan, np.inf, -np.inf
    x[0, 2], x[0, 3, 2:4] = -0.0, 1e30
    results = both(CONVOLUTIONS, {"x": x}, WEIGHTS)
    agree(results, atol=1e-4)
    for key, (ours, _) in results.items():
        assert np.isnan(ours).any(), key
        assert np.isfinite(ours).any(), key


@pytest.mark.parametrize("subnormal", ["x", "weights"])
def test_convolutions_do_not_flush_subnormal_numbers(subnormal: str) -> None:
    x, weights = floats(1, 5, 9, 11), WEIGHTS
    if subnormal == "x":
        x = x * np.float32(1e-40)
    else:
        weights = {name: w * np.float32(1e-40) for name, w in weights.items()}
    results = both(CONVOLUTIONS, {"x": x}, weights)
    agree(results, atol=200 * QUANTUM)
    for key, (ours, _) in results.items():
        assert (np.abs(ours) > 1e-41).any(), key


def test_subnormal_weights_under_large_inputs() -> None:
    """Each product is an ordinary number: 1e-40 times 1e38."""
    x = floats(1, 5, 9, 11) * np.float32(1e37)
    weights = {name: w * np.float32(1e-40) for name, w in WEIGHTS.items()}
    agree(both(CONVOLUTIONS, {"x": x}, weights), atol=1e-7)


def test_products_keep_special_values_in_their_rows_and_columns() -> None:
    a, b, w = floats(9, 20), floats(20, 13, seed=1), floats(20, 37, seed=2)
    a[0, 3], a[2, 19], a[4], a[5] = np.nan, np.inf, 1e-40, -0.0
    b[7, 12], b[0, 0] = -np.inf, np.nan
    one = a[2:3]
    nodes: Nodes = [
        ("MatMul", ["a", "w"], {}),
        ("MatMul", ["one", "w"], {}),
        ("MatMul", ["a", "b"], {}),
        ("Gemm", ["a", "b"], {"alpha": 0.5}),
    ]
    results = both(nodes, {"a": a, "b": b, "one": one}, {"w": w})
    agree(results, atol=100 * QUANTUM)
    ours = results["0 MatMul"][0]
    assert np.isfinite(ours[[1, 3, 4, 5, 6, 7, 8]]).all()
    assert (np.abs(ours[4]) > 1e-41).any()


def test_pools_against_numpy() -> None:
    """ONNX Runtime drops NaN from a maximum, and never goes below the largest finite number."""
    x = floats(1, 6, 8, 8)
    x[0, 0, 3, 3], x[0, 1, 0, 0], x[0, 2, 7, 7] = np.nan, np.inf, -np.inf
    x[0, 3], x[0, 4], x[0, 5] = -np.inf, -0.0, 1e-40
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes: Nodes = [
        ("MaxPool", ["x"], window),
        ("AveragePool", ["x"], window),
        ("GlobalMaxPool", ["x"], {}),
        ("GlobalAveragePool", ["x"], {}),
        ("MaxPool", ["x"], {"kernel_shape": [3, 3], "pads": [1] * 4}),
    ]
    got = [ours for ours, _ in both(nodes, {"x": x}).values()]
    windows = x.astype("float64").reshape(1, 6, 4, 2, 4, 2)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    sliding = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    wanted = [
        windows.max((3, 5)),
        windows.mean((3, 5)),
        x.max((2, 3), keepdims=True),
        x.astype("float64").mean((2, 3), keepdims=True),
        sliding.max((-1, -2)),
    ]
    for ours, want in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, want, rtol=RTOL, atol=2 * QUANTUM)
    assert (got[3][0, 5] > 1e-41).all()
    assert np.signbit(got[0][0, 4]).all()


def test_softmax_and_norms_of_special_rows() -> None:
    x = floats(8, 19)
    x[0, 4], x[1, 0], x[2, 3:9], x[3] = np.nan, np.inf, -np.inf, -np.inf
    x[4], x[5], x[6] = 1e37, -0.0, 1e-40
    nodes: Nodes = [
        ("Softmax", ["x"], {}),
        ("LogSoftmax", ["x"], {}),
        ("LayerNormalization", ["x", "scale"], {}),
        ("ReduceMean", ["x", "axis"], {}),
        ("ReduceSum", ["x", "axis"], {}),
    ]
    results = both(nodes, {"x": x}, {"scale": np.ones(19, "float32"), "axis": np.array([1])})
    layer_norm = results.pop("2 LayerNormalization")
    agree(results, atol=1e-6)
    # The square of 1e37 is infinite: what follows is each library's own.
    ours, theirs = (np.delete(y, 4, axis=0) for y in layer_norm)
    np.testing.assert_allclose(ours, theirs, rtol=RTOL, atol=1e-6)


UNARY = (
    "Abs", "Neg", "Sqrt", "Exp", "Log", "Tanh", "Sigmoid", "Erf", "Relu", "LeakyRelu", "Elu",
    "Selu", "Celu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Gelu", "Mish", "Sin",
    "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Floor",
    "Ceil", "Round", "Sign", "Reciprocal", "IsNaN", "IsInf", "Identity",
)  # fmt: skip
KEEP_THE_SIGN_OF_ZERO = (
    "Abs", "Neg", "Sqrt", "Tanh", "Erf", "Relu", "LeakyRelu", "Elu", "Softsign", "HardSwish",
    "Gelu", "Mish", "Sin", "Tan", "Asin", "Atan", "Sinh", "Asinh", "Atanh", "Floor", "Ceil",
    "Round", "Reciprocal", "Identity",
)  # fmt: skip


def test_elementwise_operators() -> None:
    results = both([(op, ["x"], {}) for op in UNARY], {"x": SPECIAL})
    agree(results, atol=1e-7)
    for i, op in enumerate(UNARY):
        ours, theirs = results[f"{i} {op}"]
        if op in KEEP_THE_SIGN_OF_ZERO:
            numbers = ~np.isnan(theirs)
            np.testing.assert_array_equal(
                np.signbit(ours)[numbers], np.signbit(theirs)[numbers], op
            )


def test_thresholded_relu_of_infinity() -> None:
    agree(both([("ThresholdedRelu", ["x"], {})], {"x": SPECIAL[1:]}), atol=0)


def test_operators_of_two_tensors() -> None:
    a, b = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL))
    names = ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Less", "Equal")
    nodes: Nodes = [(op, ["a", "b"], {}) for op in names]
    nodes += [("Clip", ["a", "low", "high"], {}), ("Where", ["mask", "a", "b"], {})]
    weights = {"low": np.float32(-1), "high": np.float32(2)}
    agree(both(nodes, {"a": a, "b": b, "mask": a == b}, weights), atol=0)


def test_small_results_keep_their_digits() -> None:
    """Where 1 + e**x is 1 in float32, and where a result is subnormal."""
    x = np.array([-1e-30, -9.0, -16.0, -17.5, -30.0, -80.0, -86.0], "float32")
    nodes: Nodes = [(op, ["x"], {}) for op in ("Softplus", "Exp", "Mish", "Atanh")]
    results = both(nodes, {"x": x})
    for key in ("0 Softplus", "1 Exp"):
        ours, theirs = results[key]
        np.testing.assert_allclose(ours, theirs, rtol=3e-5, err_msg=key)
    exact = x * np.logaddexp(0, x.astype("float64"))
    np.testing.assert_allclose(results["2 Mish"][0][2:], exact[2:], rtol=1e-6)
    assert results["3 Atanh"][0][0] == x[0]
    far = np.array([-88.0, -95.0, -103.0, -104.5], "float32")
    agree(both([("Exp", ["x"], {})], {"x": far}), atol=QUANTUM)


def test_powers_at_special_bases() -> None:
    x = np.concatenate([SPECIAL, [-1.0, 4.0]]).astype("float32")
    for exponent in (0.0, 0.5, 2.0, 3.0, -0.5, -1.0):
        node = ("Pow", ["x", "k"], {})
        results = both([node], {"x": x}, {"k": np.float32(exponent)})
        agree(results, atol=0)
        ours, theirs = results["0 Pow"]
        numbers = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours)[numbers], np.signbit(theirs)[numbers])


def test_logarithms_of_sums_of_infinite_rows() -> None:
    x = floats(4, 7)
    x[0], x[1, 2], x[2, 3] = -np.inf, np.inf, -np.inf
    agree(both([("ReduceLogSumExp", ["x", "axis"], {})], {"x": x}, {"axis": np.array([1])}), 1e-6)


@pytest.mark.parametrize("condition", [np.array(True), np.array([False]), np.array([[True]])])
def test_where_under_a_constant_condition(condition: np.ndarray) -> None:
    nodes: Nodes = [
        ("Where", ["c", "x", "half"], {}),
        ("Where", ["c", "half", "x"], {}),
        ("Where", ["c", "x", "x"], {}),
    ]
    agree(both(nodes, {"x": floats(1, 4, 6)}, {"c": condition, "half": np.float32(0.5)}), 0)


def test_where_under_a_constant_condition_after_a_convolution() -> None:
    x, w = floats(1, 5, 9, 11), WEIGHTS["five"]
    nodes: Nodes = [("Conv", ["x", "w"], {}), ("Where", ["c", "y0", "half"], {})]
    weights = {"w": w, "c": np.array([True]), "half": np.ones(1, "float32")}
    model = models.operators(nodes, {"x": x}, weights)
    del model.graph.output[0]
    ours, theirs = tvm_ext.build(model)(x), models.oracle(model, {"x": x})[0]
    np.testing.assert_allclose(ours, theirs, rtol=RTOL, atol=1e-4)
