"""For every rewrite rule: a graph in which it fires, and what NumPy computes; graphs it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import erf, pi
from typing import Any

import numpy as np
from relax_models import array, const
from tvm import relax
from tvm.relax import op

Body = Callable[..., Any]
Shapes = Mapping[str, tuple[int, ...]]
_X: Shapes = {"x": (2, 3, 4)}
_AB: Shapes = {"a": (4, 5), "b": (4, 5)}
_ABC: Shapes = {**_AB, "c": (4, 5)}


@dataclass(frozen=True)
class Case:
    """A rule's example.

    Attributes
    ----------
    rule : str
    inputs : dict of str to tuple of int
    body : callable
        ``body(emit, *inputs)`` gives the result.
    ops : list of str
        The operators that are left.
    numpy : callable
        The result of float64 arrays.
    refused : dict of str to (inputs, body)
        Graphs of the same kind that the rule leaves alone, by a part of the reason.
    low, high : float
        Range of the random inputs.
    dtype : str
    """

    rule: str
    inputs: Shapes
    body: Body
    ops: list[str]
    numpy: Callable[..., np.ndarray]
    refused: dict[str, tuple[Shapes, Body]] = field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0
    dtype: str = "float32"


def scalar(value: float) -> Any:
    """A constant without dimensions."""
    return relax.const(value, "float32")


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


def _transposes(emit: Any, x: Any) -> Any:
    return emit(op.permute_dims(emit(op.permute_dims(x, [1, 2, 0])), [0, 2, 1]))


def _across(emit: Any, x: Any) -> Any:
    y = emit(op.nn.relu(emit(op.permute_dims(x, [0, 2, 1]))))
    return emit(op.permute_dims(y, [0, 2, 1]))


def _across_shared(emit: Any, x: Any) -> Any:
    turned = emit(op.permute_dims(x, [0, 2, 1]))
    back = emit(op.permute_dims(emit(op.nn.relu(turned)), [2, 0, 1]))
    return emit(op.add(emit(op.permute_dims(back, [1, 2, 0])), turned))


def _padded(widths: list[int], value: float = 0.0, mode: str = "constant") -> Body:
    def body(emit: Any, x: Any) -> Any:
        padded = emit(op.nn.pad(x, widths, mode, value))
        return emit(op.nn.conv2d(padded, const(array(3, 2, 3, 3, 3)), strides=2, padding=1))

    return body


def _conv_numpy(x: np.ndarray) -> np.ndarray:
    x = np.pad(x, [(0, 0), (0, 0), (1, 2), (3, 1)])
    x = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    return np.einsum("nchwij,kcij->nkhw", windows, array(3, 2, 3, 3, 3).astype("float64"))


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


def _distributive_one(emit: Any, a: Any, b: Any) -> Any:
    return emit(op.add(a, emit(op.multiply(a, b))))


def _distributive(emit: Any, a: Any, b: Any, c: Any) -> Any:
    return emit(op.add(emit(op.multiply(a, c)), emit(op.multiply(a, b))))


_ERF = np.vectorize(erf)
CASES = (
    Case("layer_norm", _X, _layer_norm([-1]), ["nn.layer_norm"], _layer_norm_numpy, {
        "aren't the last": ({"x": (2, 4, 4)}, _layer_norm([1])),
        "gamma has the shape": ({"x": (2, 3, 1)}, _layer_norm([2])),
    }),
    Case("gelu", _X, _gelu(), ["nn.gelu"], lambda x: x / 2 * (1 + _ERF(x / 2**0.5)), {
        "": (_X, _gelu(half=0.25)),
    }),
    Case("gelu_tanh", _X, _gelu_tanh, ["nn.gelu_tanh"],
         lambda x: x / 2 * (1 + np.tanh((2 / pi) ** 0.5 * (x + 0.044715 * x**3)))),
    Case("transpose_pair", _X, _transposes, ["permute_dims"],
         lambda x: x.transpose(1, 2, 0).transpose(0, 2, 1)),
    Case("transpose_across", _X, _across, ["nn.relu"], lambda x: np.maximum(x, 0)),
    Case("pad_into_conv", {"x": (1, 3, 7, 8)}, _padded([0, 0, 0, 0, 1, 2, 3, 1]), ["nn.conv2d"],
         _conv_numpy, {
        "isn't of zeros": ({"x": (1, 3, 7, 8)}, _padded([0, 0, 0, 0, 1, 2, 3, 1], 1.0)),
        "channels are padded": ({"x": (1, 2, 7, 8)}, _padded([0, 0, 1, 0, 1, 2, 3, 1])),
    }),
    Case("power", _X, _one(op.power, scalar(3.0)), ["multiply", "multiply"], lambda x: x**3, {
        "the exponent 2.5": (_X, _one(op.power, scalar(2.5))),
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
    Case("sum_of_shifts", _X, _shifts, ["sum", "left_shift"],
         lambda x: (x.astype("int64") * 8).sum(1), low=-50, high=50, dtype="int32"),
)  # fmt: skip
