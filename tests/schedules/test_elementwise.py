"""The elementwise kernel against numpy."""

from __future__ import annotations

import re
from math import erf, prod

import numpy as np
import pytest

from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.elementwise import fuse_dimensions
from tvm_ext.schedules.epilogue import SCALAR_OPS, Epilogue, Operand, Step
from tvm_ext.schedules.workload import ElementwiseWorkload

V = HOST.lanes
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]


def chain(shape, steps, operands, dtype="float32"):
    return ElementwiseWorkload(shape, dtype, Epilogue(tuple(steps), tuple(operands), results=0))


def relu_of_sum(shape, other, dtype="float32"):
    steps = [
        Step("add", (("operand", 0), ("operand", 1)), dtype=dtype),
        Step("relu", (("value", 0),), dtype=dtype),
    ]
    return chain(shape, steps, [Operand(shape, dtype), Operand(other, dtype)], dtype)


def tanh_chain(length):
    steps = [Step("tanh", (("value", i - 1),) if i else (("operand", 0),)) for i in range(length)]
    return chain((9,), steps, [Operand((9,), "float32")])


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("block", [0, V])
def test_broadcast(block):
    shapes = [
        ((2, 13, 7, 7), (1, 13, 1, 1)),
        ((2, 13, 7, 7), (2, 13, 7, 7)),
        ((2, 13, 7, 7), (1, 1, 7, 1)),
        ((2, 16, 5, 6), (1, 1, 1, 1)),
        ((3, 2, 2, 3), (1, 1, 1, 3)),
        ((1, 24, 30, 112), (1, 24, 1, 1)),
        ((1, 24, 30, 112), (1, 1, 30, 112)),
        ((128, 4), (1, 4)),
        ((2, 9, 11), (2, 1, 11)),
        ((2, 5, 3, 4, 5), (1, 5, 1, 4, 1)),
    ]
    cases, wanted = [], []
    for shape, other in shapes:
        x, y = floats(*shape), floats(*other, seed=1)
        for params in ({}, {"tasks": 8 * HOST.cores, "vectors": 8}, {"vectors": 1}):
            w = relu_of_sum(shape, other)
            cases.append(
                Case("elementwise", w, operands=[x, y], layout=(block, block), params=params)
            )
            wanted.append(np.maximum(x + y, 0))
    for case, got, want in zip(cases, run_all(cases), wanted, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=str(case.workload.shape))


def test_sizes_around_every_tile():
    sizes = sorted({1, 2, 3, 5, *(m * V + d for m in (1, 2, 4, 8, 17, 33) for d in (-1, 0, 1))})
    shapes = [(n,) for n in sizes] + [(n, m) for n in (1, 2, 5, 9) for m in (3, V - 1, 4 * V + 1)]
    cases = []
    for shape in shapes:
        # The second operand forces two dimensions on the kernel where there are two.
        other = (1, *shape[1:]) if len(shape) > 1 else shape
        operands = [floats(*shape), floats(*other, seed=1)]
        cases.append(Case("elementwise", relu_of_sum(shape, other), operands=operands))
    for case, got in zip(cases, run_all(cases), strict=True):
        want = np.maximum(case.operands[0] + case.operands[1], 0)
        np.testing.assert_array_equal(got, want, err_msg=str(case.workload.shape))


def test_scalar_and_large_parallel():
    x = floats(3, 1000, 177)
    y = floats(1000, 1, seed=1).reshape(1, 1000, 1)
    w = relu_of_sum(x.shape, y.shape)
    default = algorithms()["elementwise"].default(w, HOST)
    assert default["tasks"] == (4 * HOST.cores if HOST.cores > 1 else 1)
    np.testing.assert_array_equal(run("elementwise", w, operands=[x, y]), np.maximum(x + y, 0))
    scalar = np.array(-2.0, "float32")
    got = run("elementwise", relu_of_sum((), ()), operands=[scalar, np.array(3.0, "float32")])
    assert got.shape == () and got == 1.0


def _f64(x):
    with np.errstate(all="ignore"):
        return {
            "rsqrt": lambda: 1 / np.sqrt(x),
            "sigmoid": lambda: 1 / (1 + np.exp(-x)),
            "erf": lambda: np.vectorize(erf)(x),
            "relu": lambda: np.where(x < 0, 0, x),
            "relu6": lambda: np.clip(x, 0, 6),
            "elu": lambda: np.where(x < 0, np.expm1(x), x),
            "celu": lambda: np.where(x < 0, 2 * np.expm1(x / 2), x),
            "selu": lambda: 1.0507009873554805 * np.where(x < 0, 1.6732632423 * np.expm1(x), x),
            "silu": lambda: x / (1 + np.exp(-x)),
            "mish": lambda: x * np.tanh(np.logaddexp(0, x)),
            "softplus": lambda: np.logaddexp(0, x),
            "softsign": lambda: x / (1 + abs(x)),
            "hardsigmoid": lambda: np.clip(0.2 * x + 0.5, 0, 1),
            "hardswish": lambda: x * np.clip(x / 6 + 0.5, 0, 1),
            "gelu": lambda: x / 2 * (1 + np.vectorize(erf)(x / np.sqrt(2))),
            "gelu_tanh": lambda: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
            "leakyrelu": lambda: np.where(x < 0, 0.1 * x, x),
            "clip": lambda: np.clip(x, -1.5, 2.5),
        }


# name: (numpy's function or a name in _f64, attributes, relative and absolute tolerance)
_NUMPY = {
    "negative": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "tanh": np.tanh,
}  # fmt: skip
_ATTRS = {"clip": (-1.5, 2.5), "leakyrelu": (0.1,), "celu": (2.0,)}
# Their absolute error is what scalar_math promises, or they cross zero.
_ABSOLUTE = {"erf", "gelu", "gelu_tanh", "mish", "silu", "tanh", "tan", "log", "acosh", "atanh"}
# x * f(x) at -inf: 0 * inf is NaN in the formula, the limit 0 in these.
_NAN_AT_MINUS_INF = {"silu", "mish", "gelu", "gelu_tanh", "hardswish", "softsign"}


def test_every_unary_operation_in_float32():
    rng = np.random.default_rng(3)
    x = np.concatenate([
        np.array(SPECIAL), rng.uniform(-1, 1, 60), rng.uniform(-20, 20, 60),
        [1e-30, -1e-30, 1e-3, -1e-3, 0.5, 1.5, 2.5, -0.5, -1.5, 100.0, -100.0, 1e-40, 3e4, -3e4],
    ]).astype("float32")  # fmt: skip
    x64 = x.astype("float64")
    names = sorted(set(_NUMPY) | set(_f64(x64)))
    cases = [
        Case(
            "elementwise",
            chain(
                x.shape,
                [Step(name, (("operand", 0),), _ATTRS.get(name, ()))],
                [Operand(x.shape, "float32")],
            ),
            operands=[x],
        )
        for name in names
    ]
    for name, got in zip(names, run_all(cases), strict=True):
        with np.errstate(all="ignore"):
            want = _NUMPY[name](x64) if name in _NUMPY else _f64(x64)[name]()
            want = want.astype("float32")
        keep = np.ones(x.shape, bool)
        if name in _NAN_AT_MINUS_INF:
            keep = np.isfinite(x) | np.isnan(x)
        # Subnormal results may be lost by the polynomials.
        atol = 1e-6 if name in _ABSOLUTE else 1.2e-38
        np.testing.assert_allclose(
            got[keep], want[keep], rtol=2e-6, atol=atol, err_msg=name, equal_nan=True
        )
        if name in ("negative", "abs", "floor", "ceil", "round", "trunc", "sqrt"):
            np.testing.assert_array_equal(np.signbit(got[3:]), np.signbit(want[3:]), err_msg=name)


def binary(op, dtype, out=None, shape=(37,)):
    step = Step(op, (("operand", 0), ("operand", 1)), dtype=out or dtype)
    return chain(shape, [step], [Operand(shape, dtype)] * 2, out or dtype)


def test_binary_operations_and_comparisons():
    rng = np.random.default_rng(4)
    numbers = [*SPECIAL, *rng.uniform(-5, 5, 4).tolist(), 1.0, 2.0]
    x, y = (g.ravel().astype("float32") for g in np.meshgrid(numbers, numbers))
    functions = {
        "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
        "maximum": np.maximum, "minimum": np.minimum, "mod": np.fmod, "floor_mod": np.mod,
        "power": np.power, "prelu": lambda a, b: np.where(a < 0, a * b, a),
        "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "greater": np.greater,
        "less_equal": np.less_equal, "greater_equal": np.greater_equal,
    }  # fmt: skip
    cases, wanted = [], []
    for name, function in functions.items():
        with np.errstate(all="ignore"):
            want = function(x, y)
        out = str(want.dtype)
        w = binary(name, "float32", out, x.shape)
        cases.append(Case("elementwise", w, operands=[x, y], out_dtype=out))
        wanted.append(want)
    for name, got, want in zip(functions, run_all(cases), wanted, strict=True):
        keep = np.ones(x.shape, bool)
        if name == "floor_mod":  # numpy gives NaN or the divisor by its own conventions
            keep = np.isfinite(x) & np.isfinite(y) & (y != 0)
        np.testing.assert_allclose(got[keep], want[keep], rtol=3e-7, err_msg=name)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, 8.0, -1.0, -2.0, 0.5, -0.5, 1.7, 11.0])
def test_constant_powers(exponent):
    x = np.array([*SPECIAL, 0.3, 1.0, 2.5, 7.0, -2.0, -0.3], "float32")
    step = Step("power", (("operand", 0), ("const", exponent)))
    got = run("elementwise", chain(x.shape, [step], [Operand(x.shape, "float32")]), operands=[x])
    with np.errstate(all="ignore"):
        want = np.power(x, np.full_like(x, exponent))  # a scalar takes numpy's square root
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_integer_and_logical_operations():
    rng = np.random.default_rng(5)
    cases, wanted = [], []
    arithmetic = {
        "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
        "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
        "floor_mod": np.mod, "mod": np.fmod, "floor_divide": np.floor_divide,
        "divide": lambda a, b: np.trunc(a.astype("float64") / b).astype(a.dtype),
        "equal": np.equal, "less": np.less, "not_equal": np.not_equal,
    }  # fmt: skip
    for dtype in ("int8", "uint8", "int32", "int64"):
        low = 0 if dtype == "uint8" else -11
        x = rng.integers(low, 12, 101).astype(dtype)
        y = rng.integers(1, 9, 101).astype(dtype)
        for name, function in arithmetic.items():
            want = function(x, y)
            w = binary(name, dtype, str(want.dtype), x.shape)
            cases.append(Case("elementwise", w, operands=[x, y], out_dtype=str(want.dtype)))
            wanted.append(want)
    p, q = rng.integers(0, 2, (2, 45)).astype(bool)
    logical = {
        "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    }  # fmt: skip
    for name, function in logical.items():
        w = binary(name, "bool", shape=p.shape)
        cases.append(Case("elementwise", w, operands=[p, q], out_dtype="bool"))
        wanted.append(function(p, q))
    for case, got, want in zip(cases, run_all(cases), wanted, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=str(case.workload.epilogue.steps))


def test_casts_where_and_predicates():
    x = np.array([*SPECIAL, 1.9, -1.9, 200.0] * 7, "float32")
    finite = np.nan_to_num(x, posinf=3, neginf=-3)
    source = Operand(x.shape, "float32")
    cases, wanted = [], []
    for dtype in ("int8", "int32", "int64", "float16", "bool"):
        data = np.clip(finite, -100, 100)
        w = chain(x.shape, [Step("cast", (("operand", 0),), dtype=dtype)], [source], dtype)
        cases.append(Case("elementwise", w, operands=[data], out_dtype=dtype))
        wanted.append(data.astype(dtype))
    for dtype in ("bool", "uint8", "int64", "float16"):
        data = np.arange(x.size).astype(dtype)
        step = Step("cast", (("operand", 0),), dtype="float32")
        w = chain(x.shape, [step], [Operand(x.shape, dtype)])
        cases.append(Case("elementwise", w, operands=[data]))
        wanted.append(data.astype("float32"))
    for name, function in {
        "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    }.items():  # fmt: skip
        w = chain(x.shape, [Step(name, (("operand", 0),), dtype="bool")], [source], "bool")
        cases.append(Case("elementwise", w, operands=[x], out_dtype="bool"))
        wanted.append(function(x))
    mask = np.arange(x.size) % 3 == 0
    step = Step("where", (("operand", 1), ("operand", 0), ("const", -1.0)))
    w = chain(x.shape, [step], [source, Operand(x.shape, "bool")])
    cases.append(Case("elementwise", w, operands=[x, mask]))
    wanted.append(np.where(mask, x, np.float32(-1)))
    for case, got, want in zip(cases, run_all(cases), wanted, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=str(case.workload.epilogue))


def test_half_precision_is_computed_in_float32():
    x = floats(83).astype("float16")
    step = Step("gelu", (("operand", 0),), dtype="float16")
    w = chain(x.shape, [step], [Operand(x.shape, "float16")], "float16")
    got = run("elementwise", w, operands=[x], out_dtype="float16")
    np.testing.assert_allclose(got, _f64(x.astype("float64"))["gelu"](), rtol=1e-3, atol=1e-4)


def test_chain_of_functions():
    x = floats(9)
    want = np.tanh(np.tanh(np.tanh(x.astype("float64"))))
    got = run("elementwise", tanh_chain(3), operands=[x])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_fused_dimensions():
    shape = (2, 16, 7, 7)
    assert fuse_dimensions(shape, [shape, shape]) == ((prod(shape),), [(prod(shape),)] * 2)
    extents, views = fuse_dimensions(shape, [shape, (1, 16, 1, 1)])
    assert extents == (2, 16, 49) and views == [(2, 16, 49), (1, 16, 1)]
    assert fuse_dimensions((1, 1), [(1, 1)]) == ((1,), [(1,)])


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        (relu_of_sum((0, 4), (0, 4)), "no elements"),
        (relu_of_sum((3, 4), (2, 4)), r"operand 1: shape \(2, 4\)"),
        (chain((4,), [Step("warp", (("operand", 0),))], [Operand((4,), "float32")]), "'warp'"),
        (ElementwiseWorkload((4,), "float32", Epilogue()), "epilogue.results is 1"),
        (tanh_chain(5), "5 functions like exp in a row; at most 4"),
    ],
)
def test_refusals(workload, reason):
    support = algorithms()["elementwise"].supports(workload, HOST)
    assert not support
    assert re.search(reason, support.reason)


def test_risky_operations_stay_plain_when_lanes_are_missing():
    layouts = algorithms()["elementwise"].layouts
    assert layouts(binary("divide", "float32", shape=(1, V + 1, 2)), HOST) == ((0, 0),)
    assert layouts(binary("divide", "float32", shape=(1, V, 2)), HOST) == ((0, 0), (V, V))
    assert layouts(binary("add", "int32", shape=(1, V, 2)), HOST) == ((0, 0),)


@pytest.mark.parametrize("key", ["vectors", "tasks"])
def test_parameters_out_of_space_are_refused(key):
    w = relu_of_sum((4, 100), (4, 100))
    algorithm = algorithms()["elementwise"]
    params = {**algorithm.default(w, HOST), key: 7}
    assert f"elementwise.{key} = 7 is not one of" in algorithm.check(w, params, HOST)


@pytest.mark.parametrize(("target", "register"), [(AVX512, "%zmm"), (NEON, ".4s")])
def test_assembly_uses_whole_vectors(target, register):
    v = target.lanes
    w = relu_of_sum((2, 2 * v + 3, 6, 5), (1, 2 * v + 3, 1, 1))
    for layout in algorithms()["elementwise"].layouts(w, target):
        assert register in assembly("elementwise", w, target, layout)


def test_every_operation_has_a_kernel_that_compiles():
    """Names in SCALAR_OPS that no test above computes must at least be known to be covered."""
    covered = set(_NUMPY) | set(_f64(np.ones(1))) | {
        "add", "subtract", "multiply", "divide", "floor_divide", "mod", "floor_mod", "power",
        "maximum", "minimum", "prelu", "equal", "not_equal", "less", "less_equal", "greater",
        "greater_equal", "isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_xor",
        "bitwise_and", "bitwise_or", "bitwise_xor", "where", "cast",
    }  # fmt: skip
    rest = {"logical_not", "bitwise_not", "left_shift", "right_shift"}
    assert set(SCALAR_OPS) == covered | rest
    p = np.arange(19).astype(bool)
    n = np.arange(19).astype("int32")
    shape = (19,)
    unary = [
        ("logical_not", "bool", p, np.logical_not(p)),
        ("bitwise_not", "int32", n, np.invert(n)),
    ]
    for name, dtype, x, want in unary:
        step = Step(name, (("operand", 0),), dtype=dtype)
        w = chain(shape, [step], [Operand(shape, dtype)], dtype)
        np.testing.assert_array_equal(
            run("elementwise", w, operands=[x], out_dtype=dtype), want, err_msg=name
        )
    shift = np.arange(19).astype("int32") % 5
    for name, want in (("left_shift", n << shift), ("right_shift", n >> shift)):
        got = run("elementwise", binary(name, "int32", shape=shape), operands=[n, shift],
                  out_dtype="int32")  # fmt: skip
        np.testing.assert_array_equal(got, want, err_msg=name)
