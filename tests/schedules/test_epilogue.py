"""Epilogues as data, and every scalar operation that they may hold, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
import tvm
from tvm import tirx

from tests.schedules.chains import ATTRIBUTES, SPECIAL, UNARY, binary, chain, floats, unary
from tests.schedules.kernels import Case, run, run_all
from tests.schedules.snippets import evaluate
from tvm_ext.schedules.epilogue import SCALAR_OPS, Epilogue, Operand, Step

# Their absolute error is what scalar_math promises, or they cross zero.
ABSOLUTE = {"erf", "gelu", "gelu_tanh", "mish", "silu", "tanh", "tan", "log", "acosh", "atanh"}
# x * f(x) at -inf: 0 * inf is NaN in the formula, the limit 0 in some of these.
NAN_AT_MINUS_INF = {"silu", "mish", "gelu", "gelu_tanh", "hardswish", "softsign"}
BINARY: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "mod": np.fmod, "floor_mod": np.mod,
    "power": np.power, "prelu": lambda a, b: np.where(a < 0, a * b, a),
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "greater": np.greater,
    "less_equal": np.less_equal, "greater_equal": np.greater_equal,
}  # fmt: skip
INTEGER: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "floor_mod": np.mod, "mod": np.fmod, "floor_divide": np.floor_divide,
    "divide": lambda a, b: np.trunc(a.astype("float64") / b).astype(a.dtype),
    "equal": np.equal, "less": np.less, "not_equal": np.not_equal,
}  # fmt: skip
LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or,
           "logical_xor": np.logical_xor}  # fmt: skip
SHIFTS = {"left_shift": np.left_shift, "right_shift": np.right_shift}
PREDICATES = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
INVERSIONS = {"logical_not": ("bool", np.logical_not), "bitwise_not": ("int32", np.invert)}


def agree(cases: Mapping[object, tuple[Case, np.ndarray]]) -> None:
    """All results are exactly those wanted."""
    results = run_all([case for case, _ in cases.values()])
    for key, got, (_, want) in zip(cases, results, cases.values(), strict=True):
        np.testing.assert_array_equal(got, want, err_msg=str(key))


def test_every_unary_operation_in_float32() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([
        np.array(SPECIAL), rng.uniform(-1, 1, 60), rng.uniform(-20, 20, 60),
        [1e-30, -1e-30, 1e-3, -1e-3, 0.5, 1.5, 2.5, -0.5, -1.5, 100.0, -100.0, 1e-40, 3e4, -3e4],
    ]).astype("float32")  # fmt: skip
    cases = [
        Case("elementwise", unary(name, x.shape, ATTRIBUTES.get(name, ())), operands=[x])
        for name in UNARY
    ]
    for name, got in zip(UNARY, run_all(cases), strict=True):
        with np.errstate(all="ignore"):
            want = UNARY[name](x.astype("float64")).astype("float32")
        keep = np.ones(x.shape, bool)
        if name in NAN_AT_MINUS_INF:
            keep = x != -np.inf
        # Subnormal results may be lost by the polynomials.
        atol = 1e-6 if name in ABSOLUTE else 1.2e-38
        np.testing.assert_allclose(got[keep], want[keep], rtol=2e-6, atol=atol, err_msg=name)
        if name in ("negative", "abs", "floor", "ceil", "round", "trunc", "sqrt"):
            np.testing.assert_array_equal(np.signbit(got[3:]), np.signbit(want[3:]), err_msg=name)


def test_binary_operations_and_comparisons() -> None:
    rng = np.random.default_rng(4)
    numbers = [*SPECIAL, *rng.uniform(-5, 5, 4).tolist(), 1.0, 2.0]
    x, y = (g.ravel().astype("float32") for g in np.meshgrid(numbers, numbers))
    cases, wanted = [], []
    for name, function in BINARY.items():
        with np.errstate(all="ignore"):
            want = function(x, y)
        out = str(want.dtype)
        w = binary(name, "float32", out, x.shape)
        cases.append(Case("elementwise", w, operands=[x, y], out_dtype=out))
        wanted.append(want)
    for name, got, want in zip(BINARY, run_all(cases), wanted, strict=True):
        keep = np.ones(x.shape, bool)
        if name == "floor_mod":  # numpy gives NaN or the divisor by its own conventions
            keep = np.isfinite(x) & np.isfinite(y) & (y != 0)
        np.testing.assert_allclose(got[keep], want[keep], rtol=3e-7, err_msg=name)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integer_operations(dtype: str) -> None:
    rng, cases = np.random.default_rng(5), {}
    x = rng.integers(0 if dtype == "uint8" else -11, 12, 101).astype(dtype)
    y = rng.integers(1, 9, 101).astype(dtype)
    for name, function in INTEGER.items():
        want = function(x, y)
        out = str(want.dtype)
        w = binary(name, dtype, out, x.shape)
        cases[name] = Case("elementwise", w, operands=[x, y], out_dtype=out), want
    agree(cases)


def test_logical_operations_shifts_and_inversions() -> None:
    rng, cases = np.random.default_rng(6), {}
    p, q = rng.integers(0, 2, (2, 45)).astype(bool)
    n, shift = np.arange(45, dtype="int32"), np.arange(45, dtype="int32") % 5
    for functions, dtype, pair in ((LOGICAL, "bool", [p, q]), (SHIFTS, "int32", [n, shift])):
        for name, function in functions.items():
            w = binary(name, dtype, shape=p.shape)
            case = Case("elementwise", w, operands=pair, out_dtype=dtype)
            cases[name] = case, function(*pair)
    for name, (dtype, function) in INVERSIONS.items():
        x = p if dtype == "bool" else n
        step = Step(name, (("operand", 0),), dtype=dtype)
        w = chain(p.shape, [step], [Operand(p.shape, dtype)], dtype)
        cases[name] = Case("elementwise", w, operands=[x], out_dtype=dtype), function(x)
    agree(cases)


def test_casts_where_and_predicates() -> None:
    x = np.array([*SPECIAL, 1.9, -1.9, 200.0] * 7, "float32")
    source, cases = Operand(x.shape, "float32"), {}
    data = np.clip(np.nan_to_num(x, posinf=3, neginf=-3), -100, 100)
    for dtype in ("int8", "int32", "int64", "float16", "bool"):
        w = chain(x.shape, [Step("cast", (("operand", 0),), dtype=dtype)], [source], dtype)
        case = Case("elementwise", w, operands=[data], out_dtype=dtype)
        cases["to", dtype] = case, data.astype(dtype)
    for dtype in ("int8", "int32"):
        w = chain(x.shape, [Step("narrow", (("operand", 0),), dtype=dtype)], [source], dtype)
        case = Case("elementwise", w, operands=[data], out_dtype=dtype)
        cases["narrow", dtype] = case, data.astype(dtype)
    for dtype in ("bool", "uint8", "int64", "float16"):
        numbers = np.arange(x.size).astype(dtype)
        step = Step("cast", (("operand", 0),), dtype="float32")
        w = chain(x.shape, [step], [Operand(x.shape, dtype)])
        cases["from", dtype] = (
            Case("elementwise", w, operands=[numbers]),
            numbers.astype("float32"),
        )
    for name, function in PREDICATES.items():
        w = chain(x.shape, [Step(name, (("operand", 0),), dtype="bool")], [source], "bool")
        cases[name] = Case("elementwise", w, operands=[x], out_dtype="bool"), function(x)
    mask = np.arange(x.size) % 3 == 0
    step = Step("where", (("operand", 1), ("operand", 0), ("const", -1.0)))
    w = chain(x.shape, [step], [source, Operand(x.shape, "bool")])
    case = Case("elementwise", w, operands=[x, mask])
    cases["where"] = case, np.where(mask, x, np.float32(-1))
    agree(cases)


def test_half_precision_is_computed_in_float32() -> None:
    x = floats(83).astype("float16")
    step = Step("gelu", (("operand", 0),), dtype="float16")
    w = chain(x.shape, [step], [Operand(x.shape, "float16")], "float16")
    got = run("elementwise", w, operands=[x], out_dtype="float16")
    np.testing.assert_allclose(got, UNARY["gelu"](x.astype("float64")), rtol=1e-3, atol=1e-4)


def test_every_operation_is_computed_by_a_test_above() -> None:
    above = {*UNARY, *BINARY, *INTEGER, *LOGICAL, *SHIFTS, *PREDICATES, *INVERSIONS}
    assert set(SCALAR_OPS) == above | {"where", "cast", "narrow"}


def test_steps_read_results_earlier_steps_operands_and_constants() -> None:
    """max(2 (a + x), a) - b, with the kernel's result a."""
    steps = (
        Step("add", (("value", 0), ("operand", 1))),
        Step("multiply", (("const", 2.0), ("value", 1))),
        Step("maximum", (("value", 2), ("value", 0))),
        Step("subtract", (("value", 3), ("operand", 0))),
    )
    epilogue = Epilogue(steps, (Operand((1,), "float32"),) * 2)
    a, x, b = floats(50), floats(50, seed=1), floats(50, seed=2)
    function = {"epilogue": lambda a, x, b: epilogue.evaluate([a], [b, x].__getitem__)}
    got = evaluate(function, a, x, b)["epilogue"]
    np.testing.assert_allclose(got, np.maximum(2 * (a + x), a) - b, rtol=1e-6, atol=1e-6)


def test_no_steps_give_the_last_result() -> None:
    results = [tirx.Var("a", "float32"), tirx.Var("b", "float32")]
    assert Epilogue(results=2).evaluate(results, lambda j: results[0]).same_as(results[1])


def test_constants_take_the_type_of_what_they_meet() -> None:
    """A threshold in an integer comparison, though the step's own type is bool."""
    step = Step("less", (("value", 0), ("const", 3)), dtype="bool")
    x = np.array([-5, 2, 3, 2**40], "int64")
    function = {"less": lambda v: Epilogue((step,)).evaluate([v], lambda j: v)}
    got = evaluate(function, x, dtype="bool")["less"]
    np.testing.assert_array_equal(got, x < 3)


def test_operations_are_counted_at_their_cost() -> None:
    def flops(*names: str) -> int:
        return Epilogue(tuple(Step(name, ()) for name in names)).flops

    assert flops() == 0
    assert flops("add", "relu") == 2
    assert flops("add", "exp") == 1 + flops("exp")
    assert flops("sin") > flops("exp") > flops("divide") > flops("multiply")


@pytest.mark.parametrize("condition", [True, False])
def test_where_under_a_constant_condition(condition: bool) -> None:
    x = floats(40)
    w = chain(
        x.shape,
        [
            Step("where", (("const", condition), ("operand", 0), ("const", 0.5))),
            Step("where", (("const", condition), ("const", 2.0), ("value", 0))),
        ],
        [Operand(x.shape, "float32")],
    )
    want = np.full(x.shape, 2.0 if condition else 0.5, "float32")
    np.testing.assert_array_equal(run("elementwise", w, operands=[x]), want)


def test_mish_spelled_out() -> None:
    """It becomes one function: with two nested ones a kernel takes minutes to compile."""
    x = np.array([np.nan, np.inf, -0.0, -30.0, -5.0, 0.3, 40.0] * 5, "float32")
    steps = [
        Step("softplus", (("operand", 0),)),
        Step("tanh", (("value", 0),)),
        Step("multiply", (("operand", 0), ("value", 1))),
    ]
    w = chain(x.shape, steps, [Operand(x.shape, "float32")])
    got = run("elementwise", w, operands=[x])
    with np.errstate(invalid="ignore"):
        want = UNARY["mish"](x.astype("float64"))
    np.testing.assert_allclose(got, want, rtol=2e-6)
    buffer = tirx.Var("x", "float32")
    mish = w.epilogue.evaluate([], lambda j: buffer)
    single = unary("mish", x.shape).epilogue.evaluate([], lambda j: buffer)
    tvm.ir.assert_structural_equal(mish, single, map_free_vars=True)
