"""Scopes, functions, conditions, loops, parameters and errors of the conversion."""

from __future__ import annotations

import numpy as np
import pytest

import tvm_ext
from tests.frontend.cases import calls, normal
from tests.frontend.relay.convert_cases import agree, module_of, op, run, tensor
from tvm_ext.errors import InputShapeError, ModelError, UnsupportedOperatorsError
from tvm_ext.frontend.relay import ast
from tvm_ext.frontend.relay.convert import MAX_ACTIVE, relay_to_relax
from tvm_ext.frontend.relay.scan import count_operators

A, B = normal(2, 3), normal(2, 3, seed=1)


def number(value: object, dtype: str = "int32") -> ast.Constant:
    return ast.Constant(np.asarray(value, dtype))


def names(module: object) -> list[str]:
    return [param.name for param in module["main"].params]


def test_inputs_weights_and_outputs() -> None:
    x, w, b = tensor("x.1", 2, 3), tensor("w", 4, 3), tensor("b", 4)
    dense = op("nn.bias_add", op("nn.dense", x, w, units=4), b)
    body = ast.Tuple((dense, ast.Tuple((op("nn.relu", dense), x))))
    weights = {"w": normal(4, 3, seed=2), "b": normal(4, seed=3)}
    module = relay_to_relax(module_of([x, w, b], body), weights)
    assert names(module) == ["x.1"]
    assert [str(n) for n in module["main"].attrs["tvm_ext.output_names"]] == [
        "output0", "output1", "output2",
    ]  # fmt: skip
    expected = A @ weights["w"].T + weights["b"]
    agree(
        run(module_of([x, w, b], body), A, params=weights),
        [expected, np.maximum(expected, 0), A],
    )


def test_shared_nodes_come_once() -> None:
    x = tensor("x", 2, 3)
    body = op("tanh", x)
    for _ in range(60):  # as a tree it would have 2**60 nodes
        body = op("add", body, body)
    assert len(calls(relay_to_relax(module_of([x], body)))) == 61


def test_deep_graphs_need_no_recursion() -> None:
    x = tensor("x", 2)
    body: ast.Expr = x
    for i in range(3000):
        var = tensor(f"v{i}", 2)
        body = ast.Let(var, op("tanh", x), op("add", body, var))
    module = module_of([x], body)
    assert len(calls(relay_to_relax(module))) == 6000
    assert count_operators(module)["tanh"] == {"main": 3000}


def test_let_and_closures() -> None:
    x, y, f, z = tensor("x", 2, 3), tensor("y", 2, 3), ast.Var("f"), tensor("z", 2, 3)
    double = ast.Function((z,), op("add", op("multiply", z, y), x))
    body = ast.Let(f, double, ast.Call(f, (ast.Call(f, (x,)),)))
    agree(run(module_of([x, y], body), A, B), (A * B + A) * B + A)


def test_global_and_primitive_functions() -> None:
    x, p, q = tensor("x", 2, 3), tensor("p", 2, 3), tensor("q", 2, 3)
    fused = ast.Function((p,), op("nn.relu", op("negative", p)), {"Primitive": 1})
    other = ast.Function((q,), ast.Tuple((ast.Call(fused, (q,)), op("exp", q))))
    pair = ast.Call(ast.GlobalVar("other"), (x,))
    body = op("add", ast.TupleGetItem(pair, 0), ast.TupleGetItem(pair, 1))
    module = relay_to_relax(module_of([x], body, other=other))
    assert [v.name_hint for v in module.get_global_vars()] == ["main"]
    agree(run(module_of([x], body, other=other), A), np.maximum(-A, 0) + np.exp(A))


@pytest.mark.parametrize("known", [True, False])
def test_known_conditions_choose_their_branch(known: bool) -> None:
    x = tensor("x", 2, 3)
    condition = op("less", number(1), number(2 if known else 0))
    body = ast.If(condition, op("exp", x), op("negative", x))
    assert calls(relay_to_relax(module_of([x], body))) == [
        "relax.exp" if known else "relax.negative"
    ]


@pytest.mark.parametrize("value", [True, False])
def test_conditions_at_run_time_select(value: bool) -> None:
    c, x = tensor("c", dtype="bool"), tensor("x", 2, 3)
    body = ast.If(c, ast.Tuple((op("exp", x), x)), ast.Tuple((op("negative", x), op("abs", x))))
    expected = [np.exp(A), A] if value else [-A, np.abs(A)]
    agree(run(module_of([c, x], body), np.asarray(value), A), expected)


def loop(bound: ast.Expr, x: ast.Expr) -> ast.Expr:
    """``f(i, v) = if i < bound then f(i + 1, tanh(v)) else v``, from 0 and `x`."""
    f, i, v = ast.Var("f"), tensor("i", dtype="int32"), tensor("v", 2, 3)
    again = ast.Call(f, (op("add", i, number(1)), op("tanh", v)))
    function = ast.Function((i, v), ast.If(op("less", i, bound), again, v))
    return ast.Let(f, function, ast.Call(f, (number(0), x)))


def test_loops_of_known_length_are_unrolled() -> None:
    x = tensor("x", 2, 3)
    module = relay_to_relax(module_of([x], loop(number(5), x)))
    assert calls(module) == ["relax.tanh"] * 5


def test_other_recursion_is_refused() -> None:
    x, n = tensor("x", 2, 3), tensor("n", dtype="int32")
    with pytest.raises(ModelError, match="number of rounds that is known at import"):
        relay_to_relax(module_of([x, n], loop(n, x)))
    forever = ast.Function((n,), ast.Call(ast.GlobalVar("f"), (n,)))
    with pytest.raises(ModelError, match=f"calls itself more than {MAX_ACTIVE} times"):
        relay_to_relax(module_of([n], ast.Call(ast.GlobalVar("f"), (n,)), f=forever))


def test_all_unsupported_operators_with_their_counts() -> None:
    x = tensor("x", 2, 3)
    hidden = ast.Function((), op("random.normal", op("unique", x)))
    body = ast.Tuple(
        (op("unique", op("unique", x)), ast.Call(ast.GlobalVar("g"), ()), op("exp", x))
    )
    with pytest.raises(UnsupportedOperatorsError) as caught:
        relay_to_relax(module_of([x], body, g=hidden, unused=ast.Function((), op("magic"))))
    assert caught.value.nodes == {
        "unique": ("1 in @g", "2 in @main"),
        "random.normal": ("1 in @g",),
    }
    assert "unique: 1 in @g, 2 in @main" in str(caught.value)


def test_types_that_the_module_states_are_checked() -> None:
    x = tensor("x", 2, 3)
    call = ast.Call(ast.Op("exp"), (x,), {}, ast.TensorType((2, "?"), "float32"))
    relay_to_relax(module_of([x], call))
    call = ast.Call(ast.Op("exp"), (x,), {}, ast.TensorType((2, 4), "float32"))
    message = r"exp \(number 1 .*got float32 \(2, 3\), the module states float32 \(2, 4\)"
    with pytest.raises(ModelError, match=message):
        relay_to_relax(module_of([x], call))


def test_open_dimensions() -> None:
    x, y = tensor("x", "?", 3), tensor("y", "n", "n")
    module = module_of([x, y], ast.Tuple((op("exp", x), op("exp", y))))
    shapes = {"x": (2, 3), "y": (4, 4)}
    inputs = relay_to_relax(module, None, shapes)["main"].params
    assert [[int(d) for d in p.ty.shape] for p in inputs] == [[2, 3], [4, 4]]
    for wrong, message in (
        ({"x": (2, 3)}, r"input 'y', dimension 0 is dynamic \(n\)"),
        ({**shapes, "y": (4, 5)}, "'y', dimension 1: n is 5 here and 4 in another place"),
        (
            {**shapes, "x": (2, 4)},
            "'x', dimension 1: the module fixes it at 3, input_shapes says 4",
        ),
        ({**shapes, "x": (2,)}, "'x' has 2 dimensions"),
        ({**shapes, "z": (1,)}, r"unknown inputs \['z'\]; the model's inputs are \['x', 'y'\]"),
    ):
        with pytest.raises(InputShapeError, match=message):
            relay_to_relax(module, None, wrong)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"v": np.zeros(3, "float32")}, r"unknown names \['v'\]; @main has \['x', 'w'\]"),
        ({"w": np.zeros(4, "float32")}, r"'w' has the shape \(4,\); .* as \(3,\)"),
        ({"w": np.zeros((1, 3), "float32")}, r"'w' has the shape \(1, 3\)"),
        ({"w": np.zeros(3)}, "'w' is float64; the module declares it as float32"),
    ],
)
def test_wrong_parameters(params: dict[str, np.ndarray], message: str) -> None:
    x, w = tensor("x", 2, 3), tensor("w", 3)
    with pytest.raises(ModelError, match=message):
        relay_to_relax(module_of([x, w], op("add", x, w)), params)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (ast.Var("y"), "%y is used where nothing binds it"),
        (ast.Op("exp"), "the operator exp is used as a value"),
        (ast.Call(ast.GlobalVar("f"), ()), "the module has no function @f"),
        (ast.TupleGetItem(number(1), 0), "field 0 is taken of int32"),
        (ast.Call(number(1), ()), "is called; only operators and functions can be"),
        (ast.Call(ast.Function((), number(1)), (number(1),)), "of 0 parameters is called with 1"),
        (ast.Function((), number(1)), "@main returns a function"),
        (op("exp"), "it has 0 arguments; argument 0 is needed"),
        (op("exp", ast.Tuple(())), "argument 0 is a tuple"),
        (op("add", number([1, 2]), tensor("x", 3)), "nothing binds it"),
    ],
)
def test_modules_that_make_no_sense(body: ast.Expr, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        relay_to_relax(module_of([], body))


def test_branches_of_other_shapes() -> None:
    c, x = tensor("c", dtype="bool"), tensor("x", 2, 3)
    body = ast.If(c, x, op("sum", x))
    with pytest.raises(ModelError, match=r"If give float32 \(2, 3\) and float32 \(\)"):
        relay_to_relax(module_of([c, x], body))


@pytest.mark.parametrize(
    ("shape", "dtype", "shown"), [((2,), "bool", r"bool \(2,\)"), ((), "int32", r"int32 \(\)")]
)
def test_conditions_are_one_truth_value(shape, dtype, shown) -> None:
    c, x = tensor("c", *shape, dtype=dtype), tensor("x", 2, 3)
    with pytest.raises(ModelError, match=f"the condition of an If is {shown}; it must be"):
        relay_to_relax(module_of([c, x], ast.If(c, x, x)))


def test_what_tvm_refuses_names_the_operator() -> None:
    x, y = tensor("x", 2, 3), tensor("y", 4, 5)
    with pytest.raises(ModelError, match=r"add \(number 1 .*arguments: float32 \(2, 3\), float32"):
        relay_to_relax(module_of([x, y], op("add", x, y)))


def test_main_is_needed_and_has_tensors() -> None:
    with pytest.raises(ModelError, match=r"no function @main; it has \['f'\]"):
        relay_to_relax(ast.RelayModule({"f": ast.Function((), number(1))}))
    x = ast.Var("x", ast.TupleType(()))
    with pytest.raises(ModelError, match="parameter 'x' of @main is no tensor"):
        relay_to_relax(module_of([x], number(1)))


def test_parameters_of_the_same_name_are_numbered() -> None:
    """As Relay's text form numbers them; graphs have the names as they were."""
    x, one, y = tensor("x", 2), tensor("x1", 2), tensor("x", 2)
    body = op("subtract", op("multiply", x, one), y)
    values = [np.array(pair, "float32") for pair in ([2, 3], [4, 5], [6, 7])]
    module = module_of([x, one, y], body)
    assert [p.name for p in relay_to_relax(module)["main"].params] == ["x", "x1", "x2"]
    agree(run(module, *values), np.array([2, 8], "float32"))
    agree(run(module, *values[:2], params={"x2": values[2]}), np.array([2, 8], "float32"))


def test_builds_and_runs() -> None:
    rng = np.random.default_rng(0)
    x, w, b = tensor("x", 1, 3, 8, 8), tensor("w", 8, 3, 3, 3), tensor("b", 8)
    weights = {
        "w": rng.normal(size=(8, 3, 3, 3)).astype("float32"),
        "b": rng.normal(size=8).astype("float32"),
    }
    body = op("nn.relu", op("nn.bias_add", op("nn.conv2d", x, w, padding=[1, 1]), b))
    body = op("nn.batch_flatten", op("nn.global_avg_pool2d", body))
    exe = tvm_ext.build(relay_to_relax(module_of([x, w, b], body), weights))
    image = rng.normal(size=(1, 3, 8, 8)).astype("float32")
    padded = np.pad(image.astype("float64"), [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, weights["w"]) + weights["b"][:, None, None]
    agree([exe(image)], np.maximum(expected, 0).mean((2, 3)).astype("float32"), 1e-4)
