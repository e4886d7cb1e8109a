"""For every rewrite rule: a graph in which it fires, and what NumPy computes; graphs it refuses."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, pi
from typing import Any

import numpy as np
from relax_models import array, const
from tvm import relax
from tvm.relax import op

from tests.passes.rewriting.case import Body, Case, Shapes, chain, part, scalar, turn
from tvm_ext.passes import dataflow as df

_X: Shapes = {"x": (2, 3, 4)}
_AB: Shapes = {"a": (4, 5), "b": (4, 5)}
_ABC: Shapes = {**_AB, "c": (4, 5)}


def _layer_norm(axes: list[int], keepdims: bool = True, width: int = 4) -> Body:
    def body(emit: Any, x: Any) -> Any:
        centred = emit(op.subtract(x, emit(op.mean(x, axes, keepdims))))
        variance = emit(op.mean(emit(op.multiply(centred, centred)), axes, keepdims))
        root = emit(op.sqrt(emit(op.add(variance, scalar(1e-5)))))
        normal = emit(op.divide(centred, root))
        gamma, beta = const(array(1, width)), const(array(2, width))
        return emit(op.add(emit(op.multiply(normal, gamma)), beta))

    return body


def _layer_norm_numpy(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return normal * array(1, 4) + array(2, 4)


def rms_norm(divide: bool = False, axes: tuple[int, ...] = (-1,), keepdims: bool = True) -> Body:
    """With a division by the root, or a product with its inverse."""

    def body(emit: Any, x: Any) -> Any:
        mean = emit(op.mean(emit(op.multiply(x, x)), list(axes), keepdims))
        shifted = emit(op.add(mean, scalar(1e-5)))
        if divide:
            normal = emit(op.divide(x, emit(op.sqrt(shifted))))
        else:
            normal = emit(op.multiply(x, emit(op.rsqrt(shifted))))
        return emit(op.multiply(normal, const(array(1, 4))))

    return body


def _rms_norm_of_two(emit: Any, x: Any, gamma: Any) -> Any:
    """The scale is no constant."""
    mean = emit(op.mean(emit(op.multiply(x, x)), [-1], True))
    normal = emit(op.multiply(x, emit(op.rsqrt(emit(op.add(mean, scalar(1e-5)))))))
    return emit(op.multiply(normal, gamma))


def rms_norm_numpy(x: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * array(1, 4)


def _float64(body: Body) -> Body:
    """The same in float64."""

    def wide(emit: Any, x: Any) -> Any:
        def emit_wide(call: Any) -> Any:
            args = [
                const(df.value_of(a).astype("float64")) if df.value_of(a) is not None else a
                for a in call.args
            ]
            return emit(relax.Call(call.op, args, call.attrs))

        return body(emit_wide, emit(op.astype(x, "float64")))

    return wide


def _gelu(half: float = 0.5, shared: bool = False) -> Body:
    def body(emit: Any, x: Any) -> Any:
        e = emit(op.erf(emit(op.divide(x, scalar(2**0.5)))))
        e = emit(op.add(e, scalar(1.0)))
        y = emit(op.multiply(emit(op.multiply(x, e)), scalar(half)))
        return emit(op.multiply(y, e)) if shared else y

    return body


def _gelu_tanh(emit: Any, x: Any) -> Any:
    cube = emit(op.power(x, scalar(3.0)))
    inner = emit(op.add(x, emit(op.multiply(cube, scalar(0.044715)))))
    t = emit(op.tanh(emit(op.multiply(inner, scalar((2 / pi) ** 0.5)))))
    return emit(op.multiply(emit(op.multiply(x, scalar(0.5))), emit(op.add(t, scalar(1.0)))))


def _square_difference(emit: Any, a: Any, b: Any, c: Any) -> Any:
    s = emit(op.add(a, b))
    return emit(op.subtract(emit(op.multiply(s, s)), emit(op.multiply(s, c))))


def _sqrt_product(emit: Any, b: Any, c: Any) -> Any:
    root = emit(op.sqrt(b))
    return emit(op.multiply(root, emit(op.multiply(root, c))))


def _sqrt_product_shared(emit: Any, b: Any, c: Any) -> Any:
    root = emit(op.sqrt(b))
    product = emit(op.multiply(root, c))
    return emit(op.add(emit(op.multiply(root, product)), emit(op.add(product, root))))


def _reciprocals(emit: Any, a: Any, b: Any) -> Any:
    of_product = emit(op.divide(scalar(1), emit(op.multiply(a, b))))
    return emit(op.multiply(emit(op.divide(scalar(1), a)), of_product))


def _abs(emit: Any, a: Any, b: Any, c: Any) -> Any:
    return emit(op.multiply(emit(op.multiply(emit(op.abs(a)), b)), emit(op.abs(c))))


def _shifts(emit: Any, x: Any) -> Any:
    return emit(op.sum(emit(op.left_shift(x, relax.const(3, "int32"))), [1]))


def _two(first: Callable[..., Any], second: Callable[..., Any]) -> Body:
    return lambda emit, *inputs: emit(second(emit(first(*inputs))))


def _one(operator: Callable[..., Any], *constants: Any) -> Body:
    return lambda emit, x: emit(operator(x, *constants))


def _silu(emit: Any, x: Any) -> Any:
    return emit(op.multiply(x, emit(op.sigmoid(x))))


def _gated(emit: Any, x: Any, y: Any) -> Any:
    return emit(op.multiply(x, emit(op.sigmoid(y))))


def _twice(f: Callable[..., Any], g: Callable[..., Any]) -> Body:
    return lambda emit, x: emit(op.add(emit(op.exp(emit(f(x)))), emit(op.tanh(emit(g(x))))))


def _sum_of_products(axis: int) -> Body:
    def body(emit: Any, x: Any, c: Any) -> Any:
        return emit(op.sum(emit(op.multiply(x, c)), [axis]))

    return body


def _distributive_one(emit: Any, a: Any, b: Any) -> Any:
    return emit(op.add(a, emit(op.multiply(a, b))))


def _distributive(emit: Any, a: Any, b: Any, c: Any) -> Any:
    return emit(op.add(emit(op.multiply(a, c)), emit(op.multiply(a, b))))


_ERF = np.vectorize(erf)
CASES = (
    Case("layer_norm", _X, _layer_norm([-1]), ["nn.layer_norm"], _layer_norm_numpy, {
        "aren't the last": ({"x": (2, 4, 4)}, _layer_norm([1])),
        "gamma has the shape": ({"x": (2, 3, 1)}, _layer_norm([2])),
        "x is float64": (_X, _float64(_layer_norm([-1]))),
    }),
    Case("rms_norm", _X, rms_norm(), ["nn.rms_norm"], rms_norm_numpy, {
        "aren't the last": ({"x": (2, 4, 4)}, rms_norm(axes=(1,))),
        "doesn't keep its axes": ({"x": (4, 4)}, rms_norm(keepdims=False)),
        "": ({"x": (2, 4), "gamma": (4,)}, _rms_norm_of_two),
        "gamma has the shape": ({"x": (2, 3, 1)}, rms_norm(axes=(2,))),
        "x is float64": (_X, _float64(rms_norm())),
    }),
    Case("gelu", _X, _gelu(), ["nn.gelu"], lambda x: x / 2 * (1 + _ERF(x / 2**0.5)), {
        "": (_X, _gelu(half=0.25)),
    }),
    Case("gelu_tanh", _X, _gelu_tanh, ["nn.gelu_tanh"],
         lambda x: x / 2 * (1 + np.tanh((2 / pi) ** 0.5 * (x + 0.044715 * x**3)))),
    Case("power", _X, _one(op.power, scalar(3.0)), ["multiply", "multiply"], lambda x: x**3, {
        "the exponent 2.5": (_X, _one(op.power, scalar(2.5))),
    }),
    Case("fractional_power", _X, _one(op.power, scalar(0.75)), ["sqrt", "sqrt", "multiply"],
         lambda x: x**0.75, {"the exponent 2.5": (_X, _one(op.power, scalar(2.5)))}, low=0.0),
    Case("silu", _X, _silu, ["nn.silu"], lambda x: x / (1 + np.exp(-x)), {
        "": ({"x": (2, 3), "y": (2, 3)}, _gated),
    }),
    Case("hard_swish", _X, _one(op.nn.silu), ["add", "clip", "multiply", "multiply"],
         lambda x: x * np.clip(x + 3, 0, 6) / 6, {
        "dtype float16": (_X, chain(lambda x: op.astype(x, "float16"), op.nn.silu)),
    }, low=-9.0, high=9.0),
    Case("idempotent", _X, chain(op.nn.relu, op.nn.relu), ["nn.relu"],
         lambda x: np.maximum(x, 0), {"": (_X, chain(op.nn.relu, op.negative))}),
    Case("common_subexpression", _X, _twice(turn(1, 0, 2), turn(1, 0, 2)),
         ["permute_dims", "exp", "tanh", "add"],
         lambda x: np.exp(x.transpose(1, 0, 2)) + np.tanh(x.transpose(1, 0, 2)), {
        "": (_X, _twice(part(1, 0, 2), part(1, 1, 3))),
    }),
    Case("divide_by_constant", _X, _one(op.divide, scalar(3.0)), ["multiply"], lambda x: x / 3, {
        "isn't a normal number": (_X, _one(op.divide, scalar(1e39 / 10**0.5))),
    }),
    Case("identity", _X, _one(op.multiply, scalar(1.0)), [], lambda x: x, {
        "moves axes": (_X, _one(op.permute_dims, [0, 2, 1])),
        "the type changes": (_X, _one(op.astype, "float16")),
        "a part": (_X, _one(op.strided_slice, [1], [0], [2])),
        "backwards": (_X, _one(op.strided_slice, [1], [2], [-4], [-1])),
    }),
    Case("distributive", _ABC, _distributive, ["add", "multiply"], lambda a, b, c: a * (b + c)),
    Case("distributive_one", {"a": (4, 5), "b": (5,)}, _distributive_one, ["add", "multiply"],
         lambda a, b: a + a * b, {"saves nothing": (_AB, _distributive_one)}),
    Case("square_difference", _ABC, _square_difference, ["add", "subtract", "multiply"],
         lambda a, b, c: (a + b) ** 2 - (a + b) * c),
    Case("reciprocal_product", _AB, _reciprocals, ["divide", "multiply", "divide"],
         lambda a, b: 1 / a * (1 / (a * b)), low=0.5),
    Case("sqrt_product", {"b": (4, 5), "c": (4, 5)}, _sqrt_product, ["multiply"],
         lambda b, c: b * c, {
        "saves nothing": ({"b": (4, 5), "c": (4, 5)}, _sqrt_product_shared),
    }, low=0.0),
    Case("abs_product", _ABC, _abs, ["multiply", "abs", "multiply"],
         lambda a, b, c: abs(a) * b * abs(c)),
    Case("product_of_exponentials", _X, _two(op.exp, lambda x: op.prod(x, [1])), ["sum", "exp"],
         lambda x: np.exp(x).prod(1)),
    Case("sum_of_products", {"x": (2, 3, 4), "c": (3, 1)}, _sum_of_products(2),
         ["sum", "squeeze", "multiply"], lambda x, c: (x * c).sum(2), {
        "x itself is broadcast": ({"x": (2, 3, 4), "c": (3, 1)}, _sum_of_products(1)),
        "varies along the summed": ({"c": (3, 1), "x": (2, 3, 4)}, _sum_of_products(1)),
    }),
    Case("sum_of_shifts", _X, _shifts, ["sum", "left_shift"],
         lambda x: (x.astype("int64") * 8).sum(1), low=-50, high=50, dtype="int32"),
)  # fmt: skip
