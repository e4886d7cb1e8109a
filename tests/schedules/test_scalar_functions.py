"""Logarithm, powers, remainders and activations against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import tirx

from tests.schedules.snippets import evaluate, ulps
from tvm_ext.schedules import scalar_functions as sf

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3.4e38, -3.4e38], "float32")


def grid(*values: float, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    """Every pair of the values."""
    a, b = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    return a.ravel(), b.ravel()


def test_log_is_within_two_units_in_the_last_place() -> None:
    rng = np.random.default_rng(0)
    positive = np.concatenate(
        [2.0 ** rng.uniform(-149, 128, 40_000), rng.uniform(0.4, 2.5, 40_000), [2.0**-149, 1.0]]
    )
    x = np.concatenate([SPECIAL, [-1.0], positive]).astype("float32")
    got = evaluate({"log": sf.log}, x)["log"]
    with np.errstate(all="ignore"):
        exact = np.log(x.astype("float64"))
    np.testing.assert_allclose(got[:10], exact[:10], rtol=2e-7)
    finite = np.isfinite(x[10:])  # the largest powers of two round to infinity
    assert ulps(got[10:], exact[10:])[finite].max() <= 2


ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softplus": (sf.softplus, lambda x: np.logaddexp(0, x)),
    "expm1": (sf.expm1, np.expm1),
    "elu": (lambda x: sf.elu(x, 1.5), lambda x: np.where(x < 0, 1.5 * np.expm1(x), x)),
    "celu": (lambda x: sf.celu(x, 2.0), lambda x: np.where(x < 0, 2 * np.expm1(x / 2), x)),
    "mish": (sf.mish, lambda x: x * np.tanh(np.logaddexp(0, x))),
    "hard_sigmoid": (lambda x: sf.hard_sigmoid(x, 0.2, 0.5), lambda x: np.clip(x / 5 + 0.5, 0, 1)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_keep_their_relative_error(name: str) -> None:
    """Near zero as well, where the plain formulas cancel, and far from it, where they overflow."""
    function, reference = ACTIVATIONS[name]
    rng = np.random.default_rng(1)
    x = np.concatenate([
        SPECIAL[:5], rng.uniform(-15, 15, 20_000), rng.uniform(-85, 85, 2_000),
        rng.choice([-1, 1], 5_000) * 10.0 ** rng.uniform(-30, 0, 5_000),
        [1e30, -1e30, 1e20, -1e25, 88.0, -100.0],
    ]).astype("float32")  # fmt: skip
    with np.errstate(all="ignore"):
        exact = reference(x.astype("float64")).astype("float32")
    got = evaluate({name: function}, x)[name]
    # Subnormal results may be lost; hard_sigmoid crosses zero away from x = 0.
    atol = 1e-7 if name == "hard_sigmoid" else 1.2e-38
    np.testing.assert_allclose(got, exact, rtol=3e-6, atol=atol)


def test_sign() -> None:
    got = evaluate({"sign": sf.sign}, SPECIAL)["sign"]
    np.testing.assert_array_equal(got, [np.nan, 1, -1, 0, 0, 1, -1, 1, -1])
    for dtype, values in (("int8", [-128, -1, 0, 127]), ("uint8", [0, 1, 200, 255])):
        x = np.array(values, dtype)
        got = evaluate({"sign": sf.sign}, x, dtype=dtype)["sign"]
        np.testing.assert_array_equal(got, np.sign(x))


def test_predicates_at_nan_and_infinity() -> None:
    a, b = grid(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5)
    got = evaluate({"differ": sf.not_equal}, a, b, dtype="bool")["differ"]
    np.testing.assert_array_equal(got, a != b)
    functions = {"infinite": sf.is_infinite, "finite": sf.is_finite}
    got = evaluate(functions, SPECIAL, dtype="bool")
    np.testing.assert_array_equal(got["infinite"], np.isinf(SPECIAL))
    np.testing.assert_array_equal(got["finite"], np.isfinite(SPECIAL))
    p, q = grid(0, 1, dtype="bool")
    got = evaluate({"xor": sf.logical_xor}, p, q, dtype="bool")["xor"]
    np.testing.assert_array_equal(got, p ^ q)


def test_unsigned_numbers_wrap_when_negated() -> None:
    x = np.array([0, 1, 200, 255], "uint8")
    got = evaluate({"negative": sf.negative}, x, dtype="uint8")["negative"]
    np.testing.assert_array_equal(got, np.negative(x))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64"])
def test_casts_of_numbers_out_of_range(source: str, dtype: str) -> None:
    """As numpy on x86, where that is the same for vectors and single numbers."""
    values = [0.0, -0.0, 0.9, -0.9, 127.5, 100.5, 3e9, 9.3e18]
    if not dtype.startswith("u"):
        values += [np.nan, np.inf, -np.inf, -300.0, 300.0, -3e9, -9.3e18, 1e30, 4294967296.0]
    elif dtype == "uint64":
        values += [-1.0, -300.5]
    x = np.array(values, source)
    with np.errstate(invalid="ignore"):
        # Narrow types keep the low bits of an int32.
        wide = x.astype("int32") if dtype in ("int8", "uint8", "int16") else x
        want = wide.astype(dtype)
    if dtype == "uint32":
        x, want = x[x < 2**32], want[x < 2**32]
    got = evaluate({"cast": lambda v: sf.cast(v, dtype)}, x, dtype=dtype)["cast"]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_shifts_by_more_than_the_bits(dtype: str) -> None:
    a = np.array([1, 3, 100, 127, 0], dtype)
    if dtype != "uint8":
        a = np.concatenate([a, -a])
    a, b = (x.ravel() for x in np.meshgrid(a, np.array([0, 1, 7, 8, 63, 64, 100], dtype)))
    got = evaluate({"left": sf.left_shift, "right": sf.right_shift}, a, b, dtype=dtype)
    np.testing.assert_array_equal(got["left"], np.left_shift(a, b))
    np.testing.assert_array_equal(got["right"], np.right_shift(a, b))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8"])
def test_remainders_take_the_sign_of_one_side(dtype: str) -> None:
    a, b = grid(-7, -3, -2, 2, 3, 7, 100, dtype=dtype)
    functions = {
        "truncated": sf.truncated_mod, "floored": sf.floored_mod, "quotient": sf.floored_divide,
    }  # fmt: skip
    got = evaluate(functions, a, b, dtype=dtype)
    np.testing.assert_array_equal(got["truncated"], np.fmod(a, b))
    np.testing.assert_array_equal(got["floored"], np.mod(a, b))
    np.testing.assert_array_equal(got["quotient"], np.floor_divide(a, b))


def test_float_remainders_at_nan_and_infinity() -> None:
    a, b = grid(np.nan, np.inf, 5.5, -5.5, 0.0)
    got = evaluate({"truncated": sf.truncated_mod}, a, b)["truncated"]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, np.fmod(a, b))


EXPONENTS = [0.0, 1.0, 2.0, 3.0, 8.0, -1.0, -2.0, 0.5, -0.5, 1.5, 0.25, -2.5, 1.7, 11.0, 0.3]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_constant_powers(exponent: float) -> None:
    x = np.array([*SPECIAL[:5], 0.3, 1.0, 2.5, 7.0, -2.0, -0.3, 1e-20, 1e20], "float32")
    got = evaluate({"power": lambda v: sf.power(v, tirx.const(exponent, "float32"))}, x)["power"]
    with np.errstate(all="ignore"):
        want = np.power(x, np.full_like(x, exponent))  # a scalar takes numpy's square root
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1.2e-38)


def test_powers_of_two_tensors() -> None:
    a, b = grid(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -2.0)
    with np.errstate(all="ignore"):
        want = np.power(a, b)
    np.testing.assert_allclose(evaluate({"power": sf.power}, a, b)["power"], want, rtol=1e-6)
    base, exponent = np.array([2, -3, 7, 0], "int32"), np.array([10, 3, 0, 5], "int32")
    got = evaluate({"power": sf.power}, base, exponent, dtype="int32")["power"]
    np.testing.assert_array_equal(got, base**exponent)
    five = tirx.const(5, "int32")
    got = evaluate({"chain": lambda v: sf.power(v, five)}, base, dtype="int32")["chain"]
    np.testing.assert_array_equal(got, base**5)


def test_half_precision_is_computed_in_float32() -> None:
    """60000 squared overflows float16, its root of the square doesn't."""
    x = np.array([60000.0, 0.001, -3.0], "float16")
    norm = sf.in_float32(lambda v: tirx.sqrt(v * v))
    got = evaluate({"norm": norm}, x, dtype="float16")["norm"]
    np.testing.assert_array_equal(got, np.abs(x))
    x = np.array([60000.0, 2.0], "float32")
    np.testing.assert_array_equal(evaluate({"same": norm}, x)["same"], x)
