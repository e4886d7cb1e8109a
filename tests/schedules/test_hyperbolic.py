"""Hyperbolic functions and their inverses against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.schedules.snippets import evaluate
from tvm_ext.schedules import hyperbolic as hy

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40]
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "asinh": (hy.asinh, np.arcsinh), "sinh": (hy.sinh, np.sinh), "cosh": (hy.cosh, np.cosh),
    "atanh": (hy.atanh, np.arctanh),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error(name: str) -> None:
    """Near zero as well, where plain formulas cancel, and far from it, where they overflow."""
    function, reference = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    x = np.concatenate([
        SPECIAL, [1.0, -1.0, 1.5, 1e30, -1e30, 88.0, -100.0], rng.uniform(-1, 1, 20_000),
        rng.uniform(-85, 85, 5_000),
        rng.choice([-1, 1], 5_000) * 10.0 ** rng.uniform(-30, 0, 5_000),
    ]).astype("float32")  # fmt: skip
    with np.errstate(all="ignore"):
        exact = reference(x.astype("float64")).astype("float32")
    got = evaluate({name: function}, x)[name]
    np.testing.assert_allclose(got, exact, rtol=3e-6, atol=0)
    odd = name != "cosh"
    np.testing.assert_array_equal(np.signbit(got[1:7]), odd & np.signbit(exact[1:7]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_double_precision(name: str) -> None:
    function, reference = FUNCTIONS[name]
    x = np.array([*SPECIAL, 1e-9, -0.3, 0.7, 0.999, -30.0, 300.0], "float64")
    with np.errstate(all="ignore"):
        want = reference(x)
    got = evaluate({name: function}, x, dtype="float64")[name]
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=0)


def test_overflow_where_float32_does() -> None:
    x = np.array([89.0, -89.0], "float32")
    for name in ("sinh", "cosh"):
        function, reference = FUNCTIONS[name]
        got = evaluate({name: function}, x)[name]
        np.testing.assert_allclose(got, reference(x.astype("float64")), rtol=1e-5)
