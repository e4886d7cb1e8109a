"""Vectorised scalar functions against NumPy in float64, over all of float32."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
import tvm
from tvm import tirx

from tests.schedules.kernels import HOST
from tests.schedules.snippets import evaluate, map_snippet, ulps
from tvm_ext.schedules import scalar_math as sm

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3.4e38, -3.4e38], "float32")


def spread(seed: int, low: float = -45, high: float = 38) -> np.ndarray:
    """Both signs, magnitudes from subnormal to the largest, and the special values."""
    rng = np.random.default_rng(seed)
    magnitudes = 10.0 ** rng.uniform(low, high, 20_000)
    signed = magnitudes * rng.choice([-1, 1], magnitudes.size)
    return np.concatenate([SPECIAL, signed.astype("float32")])


def test_exp_is_within_two_units_in_the_last_place() -> None:
    x = np.concatenate([SPECIAL, np.linspace(-87.3, 88.72, 100_003).astype("float32")])
    got = evaluate({"exp": sm.exp}, x)["exp"]
    with np.errstate(over="ignore"):
        exact = np.exp(x.astype("float64"))
    np.testing.assert_array_equal(got[:9], [np.nan, np.inf, 0, 1, 1, 1, 1, np.inf, 0])
    assert ulps(got[9:], exact[9:]).max() <= 2


def test_exp_underflows_to_zero_and_overflows_to_infinity() -> None:
    x = np.array([-87.5, -104.0, -1e30, 88.73, 1e30], "float32")
    np.testing.assert_array_equal(evaluate({"exp": sm.exp}, x)["exp"], [0, 0, 0, np.inf, np.inf])


def test_short_exp_is_close_for_what_a_softmax_takes() -> None:
    x = np.concatenate([[0.0, -0.0], np.linspace(-87.3, 0, 100_003)]).astype("float32")
    got, exact = evaluate({"": sm.short_exp}, x)[""], np.exp(x.astype("float64"))
    assert (np.abs(got / exact - 1) < 3e-7 - 3e-9 * x).all()
    special = np.array([-np.inf, -3.4e38, -104, -88.1, np.nan], "float32")
    np.testing.assert_array_equal(evaluate({"": sm.short_exp}, special)[""], [0, 0, 0, 0, np.nan])


BOUNDED = {
    "sigmoid": (sm.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (sm.tanh, np.tanh),
    "erf": (sm.erf, np.vectorize(erf)),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_functions_keep_their_absolute_error(name: str) -> None:
    function, reference = BOUNDED[name]
    x = np.concatenate([spread(0), np.linspace(-12, 12, 50_001).astype("float32")])
    with np.errstate(over="ignore"):
        exact = reference(x.astype("float64"))
    got = evaluate({name: function}, x)[name]
    np.testing.assert_allclose(got, exact, rtol=0, atol=4e-7)
    # They saturate exactly, never beyond.
    assert np.nanmax(got) == 1
    assert np.nanmin(got) == (0 if name == "sigmoid" else -1)


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_odd_functions_keep_relative_accuracy_near_zero(name: str) -> None:
    function, reference = BOUNDED[name]
    x = spread(1, -37, 0)[9:]
    exact = reference(x.astype("float64"))
    np.testing.assert_allclose(evaluate({name: function}, x)[name], exact, rtol=6e-7)


def test_odd_functions_keep_the_sign_of_zero() -> None:
    got = evaluate({"tanh": sm.tanh, "erf": sm.erf}, np.array([-0.0], "float32"))
    assert all(np.signbit(value[0]) for value in got.values())


def test_gelu_in_both_forms() -> None:
    x = np.concatenate([SPECIAL[:2], np.linspace(-30, 30, 10_001).astype("float32")])
    got = evaluate({"erf": sm.gelu, "tanh": sm.gelu_tanh}, x)
    x = x.astype("float64")
    exact = x / 2 * (1 + np.vectorize(erf)(x / np.sqrt(2)))
    np.testing.assert_allclose(got["erf"], exact, rtol=4e-7, atol=2e-6)
    exact = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(got["tanh"], exact, rtol=4e-7, atol=2e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_maximum_and_minimum_are_numpys(dtype: str) -> None:
    """Above all a NaN in either argument."""
    values = [np.nan, np.inf, -np.inf, 1.5, -2.0] if dtype.startswith("f") else [0, 1, 7, 100]
    a, b = (g.ravel() for g in np.meshgrid(np.array(values, dtype), np.array(values, dtype)))
    got = evaluate({"max": sm.maximum, "min": sm.minimum}, a, b, dtype=dtype)
    np.testing.assert_array_equal(got["max"], np.maximum(a, b))
    np.testing.assert_array_equal(got["min"], np.minimum(a, b))


def test_relu_and_clip_pass_nan_and_the_sign_of_zero() -> None:
    functions = {
        "relu": sm.relu,
        "both": lambda x: sm.clip(x, -1.0, 2.0),
        "low": lambda x: sm.clip(x, -1.0, float("inf")),
        "high": lambda x: sm.clip(x, float("-inf"), 2.0),
    }
    got = evaluate(functions, SPECIAL)
    tiny = np.float32(1e-40)
    np.testing.assert_array_equal(
        got["relu"], [np.nan, np.inf, 0, 0, 0, tiny, 0, np.float32(3.4e38), 0]
    )
    for name, (low, high) in {
        "both": (-1, 2), "low": (-1, np.inf), "high": (-np.inf, 2),
    }.items():  # fmt: skip
        np.testing.assert_array_equal(got[name], np.clip(SPECIAL, low, high))
    assert np.signbit(got["relu"][4]) and np.signbit(got["both"][4])


def test_leaky_relu_and_division() -> None:
    x = np.array([-7, 7, -1, 0, np.nan], "float32")
    slope = tirx.const(0.25, "float32")
    got = evaluate({"leaky": lambda v: sm.leaky_relu(v, slope)}, x)["leaky"]
    np.testing.assert_array_equal(got, [-1.75, 7, -0.25, 0, np.nan])
    a, b = np.array([7, -7, 7, -7], "int32"), np.array([2, 2, -2, -2], "int32")
    got = evaluate({"divide": sm.divide}, a, b, dtype="int32")["divide"]
    np.testing.assert_array_equal(got, [3, -3, -3, 3])
    got = evaluate({"divide": sm.divide}, a.astype("f4"), b.astype("f4"))["divide"]
    np.testing.assert_array_equal(got, [3.5, -3.5, -3.5, 3.5])


def test_other_precisions_take_libm() -> None:
    x = np.array([-2.0, -0.25, 0.0, 0.5, 3.0])
    functions = {"exp": sm.exp, "tanh": sm.tanh, "sigmoid": sm.sigmoid, "erf": sm.erf}
    got = evaluate(functions, x, dtype="float64")
    np.testing.assert_allclose(got["exp"], np.exp(x), rtol=1e-14)
    np.testing.assert_allclose(got["tanh"], np.tanh(x), rtol=1e-14)
    np.testing.assert_allclose(got["sigmoid"], 1 / (1 + np.exp(-x)), rtol=1e-14)
    np.testing.assert_allclose(got["erf"], np.vectorize(erf)(x), rtol=1e-14, atol=1e-15)


def test_no_lane_calls_a_library() -> None:
    """That is what these functions are for."""
    x = np.zeros(4 * HOST.lanes, "float32")
    for function in (sm.exp, sm.tanh, sm.sigmoid, sm.erf, sm.gelu, sm.gelu_tanh):
        kernel = map_snippet(function, x).function("main")
        module = tvm.compile(tvm.IRModule({"main": kernel}), target=HOST.tvm).mod
        text = str(module.inspect_source("asm"))
        for name in ("expf", "tanhf", "erff", "floorf"):
            assert name not in text, (function.__name__, name)


def test_gradual_exp_keeps_subnormal_results() -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 88.7, 88.73, -87.3, -87.4, -103.9, -104.1],
        rng.uniform(-105, -86, 5_000), rng.uniform(-86, 88.7, 5_000),
    ]).astype("float32")  # fmt: skip
    with np.errstate(over="ignore"):
        exact = np.exp(x.astype("float64")).astype("float32")
    got = evaluate({"exp": sm.gradual_exp}, x)["exp"]
    quantum = float(np.finfo("float32").smallest_subnormal)
    np.testing.assert_allclose(got, exact, rtol=3e-7, atol=quantum)
    assert (got[(x < -88) & (x > -103)] > 0).all()


def test_relu_of_unsigned_numbers() -> None:
    x = np.array([0, 1, 200, 255], "uint8")
    np.testing.assert_array_equal(evaluate({"relu": sm.relu}, x, dtype="uint8")["relu"], x)


def test_gelu_keeps_the_sign_of_zero() -> None:
    x = np.array([-0.0, -30.0], "float32")
    got = evaluate({"gelu": sm.gelu, "tanh": sm.gelu_tanh}, x)
    assert all(np.signbit(y).all() for y in got.values())
