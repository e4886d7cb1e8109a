"""Elementwise operators, activations and dtypes, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases, constants, module_of, op, tensor
from tvm_ext.frontend.relay import ast
from tvm_ext.frontend.relay.convert import relay_to_relax

X, Y = normal(2, 3, 5), normal(3, 5, seed=1)
INTS = np.array([[-7, 7, -1], [5, 0, 2**31 - 1]], "int32")
DIVISORS = np.array([3, -3, 2], "int32")
BITS = np.array([0, 1, 30, 7], "int32")
SPECIAL = np.array([np.inf, -np.inf, np.nan, -0.0, 1.5], "float32")
HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 2.4], "float32")
SLOPES = np.abs(normal(3, seed=2))


def unary(name: str, function, x: np.ndarray = X, **options) -> Case:
    return Case(name, name, [x], {}, np.asarray(function(x)), **options)


def binary(name: str, function, a: np.ndarray = X, b: np.ndarray = Y) -> Case:
    return Case(name, name, [a, b], {}, np.asarray(function(a, b)), runtime=(0, 1))


CASES = Cases(
    [
        unary("abs", np.abs),
        unary("ceil", np.ceil),
        unary("floor", np.floor),
        unary("trunc", np.trunc),
        unary("exp", np.exp),
        unary("fast_exp", np.exp),
        unary("log", np.log, np.abs(X) + 0.1),
        unary("log2", np.log2, np.abs(X) + 0.1),
        unary("log10", np.log10, np.abs(X) + 0.1),
        unary("sqrt", np.sqrt, np.abs(X)),
        unary("rsqrt", lambda x: 1 / np.sqrt(x), np.abs(X) + 0.1),
        unary("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        unary("tanh", np.tanh),
        unary("fast_tanh", np.tanh, rtol=1e-4),
        unary("sin", np.sin),
        unary("cos", np.cos),
        unary("tan", np.tan),
        unary("sinh", np.sinh),
        unary("cosh", np.cosh),
        unary("asin", np.arcsin, np.tanh(X)),
        unary("acos", np.arccos, np.tanh(X)),
        unary("atan", np.arctan),
        unary("asinh", np.arcsinh),
        unary("acosh", np.arccosh, np.abs(X) + 1.1),
        unary("atanh", np.arctanh, np.tanh(X)),
        unary("erf", lambda x: erf(x).astype("float32")),
        unary("sign", np.sign),
        unary("negative", np.negative),
        binary("trunc_divide", lambda a, b: np.trunc(a / b)),
        unary("copy", np.copy),
        unary("isnan", np.isnan, SPECIAL),
        unary("isinf", np.isinf, SPECIAL),
        unary("isfinite", np.isfinite, SPECIAL),
        unary("logical_not", np.logical_not, X > 0),
        unary("bitwise_not", np.bitwise_not, INTS),
        # By hand: halves go away from zero.
        Case(
            "round",
            "round",
            [HALVES],
            {},
            np.array([-3, -2, -1, 1, 2, 3, 0, 2], "float32"),
        ),
        binary("add", np.add),
        binary("subtract", np.subtract),
        binary("multiply", np.multiply),
        binary("maximum", np.maximum),
        binary("minimum", np.minimum),
        binary("divide", np.divide),
        # By hand: whole numbers are divided towards zero, the rest has the sign of the dividend.
        Case(
            "divide_ints",
            "divide",
            [INTS, DIVISORS],
            {},
            np.array([[-2, -2, 0], [1, 0, 2**30 - 1]], "int32"),
            runtime=(0, 1),
        ),
        Case(
            "mod_ints",
            "mod",
            [INTS, DIVISORS],
            {},
            np.array([[-1, 1, -1], [2, 0, 1]], "int32"),
            runtime=(0, 1),
        ),
        binary("floor_divide", np.floor_divide, INTS, DIVISORS),
        binary("floor_mod", np.mod, INTS, DIVISORS),
        binary("power", np.power, np.abs(X), Y),
        binary("equal", np.equal, INTS, DIVISORS),
        binary("not_equal", np.not_equal, INTS, DIVISORS),
        binary("less", np.less),
        binary("less_equal", np.less_equal, INTS, INTS[:1]),
        binary("greater", np.greater),
        binary("greater_equal", np.greater_equal, INTS, INTS[1:]),
        binary("logical_and", np.logical_and, X > 0, Y > 0),
        binary("logical_or", np.logical_or, X > 0, Y > 0),
        binary("logical_xor", np.logical_xor, X > 0, Y > 0),
        binary("bitwise_and", np.bitwise_and, INTS, DIVISORS),
        binary("bitwise_or", np.bitwise_or, INTS, DIVISORS),
        binary("bitwise_xor", np.bitwise_xor, INTS, DIVISORS),
        binary("left_shift", np.left_shift, np.array([[1], [3]], "int32"), BITS[:2]),
        binary("right_shift", np.right_shift, np.array([[-9], [2**30]], "int32"), BITS),
        Case("where", "where", [X > 0, X, Y], {}, np.where(X > 0, X, Y), runtime=(0, 1, 2)),
        Case("clip", "clip", [X], {"a_min": -0.5, "a_max": 1.0}, X.clip(-0.5, 1)),
        Case(
            "clip_wide_bounds",
            "clip",
            [INTS],
            {"a_min": -1e30, "a_max": 5.5},
            INTS.clip(None, 5),
        ),
        Case("cast", "cast", [X * 9], {"dtype": "int32"}, (X * 9).astype("int32")),
        Case("cast_bool", "cast", [INTS], {"dtype": "bool"}, INTS.astype(bool)),
        Case("cast_like", "cast_like", [X * 9, INTS], {}, (X * 9).astype("int32")),
        # Relay's definition: (x * multiplier * 2**(shift - 31)), halves up.
        Case(
            "fixed_point_multiply",
            "fixed_point_multiply",
            [np.array([-3, -2, -1, 1, 2, 3, 10**6], "int32")],
            {"multiplier": 2**30, "shift": 0},
            np.array([-1, -1, 0, 1, 1, 2, 500000], "int32"),
        ),
        unary("nn.relu", lambda x: np.maximum(x, 0)),
        Case("leaky", "nn.leaky_relu", [X], {"alpha": 0.3}, np.where(X > 0, X, 0.3 * X)),
        Case(
            "prelu",
            "nn.prelu",
            [X, SLOPES],
            {"axis": 1},
            np.where(X > 0, X, X * SLOPES[:, None]),
        ),
        Case(
            "prelu_at_run_time",
            "nn.prelu",
            [X, SLOPES],
            {},
            np.where(X > 0, X, X * SLOPES[:, None]),
            runtime=(0, 1),
        ),
        Case("bias", "nn.bias_add", [X, SLOPES], {"axis": 1}, X + SLOPES[:, None]),
        Case("bias_last", "nn.bias_add", [X, Y[0]], {"axis": -1}, X + Y[0]),
        Case(
            "softmax",
            "nn.softmax",
            [X],
            {"axis": 1},
            np.exp(X) / np.exp(X).sum(1, keepdims=True),
        ),
        Case(
            "log_softmax",
            "nn.log_softmax",
            [X],
            {},
            X - np.log(np.exp(X).sum(-1, keepdims=True)),
        ),
        Case("flatten", "nn.batch_flatten", [X], {}, X.reshape(2, 15)),
        Case("dropout", "nn.dropout", [X], {"rate": 0.5}, [X, np.ones_like(X)]),
        Case("on_device", "on_device", [X], {}, X),
        Case(
            "cross_entropy",
            "nn.cross_entropy",
            [np.abs(Y) + 0.1, np.abs(Y[::-1])],
            {},
            np.asarray(-(np.log(np.abs(Y) + 0.1) * np.abs(Y[::-1])).sum() / 3, "float32"),
            runtime=(0, 1),
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


def test_what_is_known_is_computed_at_import() -> None:
    x = tensor("x", 3)
    two, three = (ast.Constant(np.asarray(n, "float32")) for n in (2, 3))
    body = op("add", x, op("exp", op("multiply", two, three)))
    (value,) = constants(relay_to_relax(module_of([x], body)))
    np.testing.assert_allclose(value, np.exp(6), rtol=1e-6)
