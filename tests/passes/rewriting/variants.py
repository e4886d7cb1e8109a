"""More cases of rules with several forms: each fires, and keeps the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from relax_models import array, const
from tvm.relax import op

from tests.passes.rewriting.case import Body, Case, Shapes, chain, part, scalar, shaped, turn
from tests.passes.rewriting.cases import rms_norm, rms_norm_numpy

_X: Shapes = {"x": (2, 3, 4)}
_XC: Shapes = {"x": (2, 3, 4), "c": (2, 1, 4)}
_TENSOR: Shapes = {"x": (2, 6, 4)}
_IMAGES: Shapes = {"a": (1, 2, 4, 6), "b": (1, 3, 4, 6)}


def _power(exponent: float) -> Body:
    return chain(lambda x: op.power(x, scalar(exponent)))


def _reduced(operator: Callable[..., Any], axes: list[int], keepdims: bool) -> Body:
    return lambda emit, x, c: emit(operator(emit(op.multiply(x, c)), axes, keepdims))


def _with_x(*parts: Callable[[Any], Any]) -> Body:
    """A concatenation of x and parts of it."""
    return lambda emit, x: emit(op.concat([x, *(emit(p(x)) for p in parts)], 1))


def _average(emit: Any, a: Any, b: Any) -> Any:
    whole = emit(op.concat([a, b], 1))
    return emit(op.nn.avg_pool2d(whole, (2, 2), (2, 2)))


def _average_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([a, b], 1).reshape(1, 5, 2, 2, 3, 2).mean((3, 5))


def _slice_inside(emit: Any, a: Any, b: Any) -> Any:
    return emit(part(1, 3, 5)(emit(op.concat([a, b], 1))))


def _exact_parts(emit: Any, a: Any, b: Any) -> Any:
    whole = emit(op.concat([a, b], 1))
    first, second = (emit(part(1, begin, begin + 3)(whole)) for begin in (0, 3))
    return emit(op.subtract(second, first))


def _turned(emit: Any, x: Any) -> Any:
    """A number minus the columns of two products."""
    made = [emit(op.matmul(x, const(array(w, 4, w)))) for w in (2, 3)]
    whole = emit(op.concat([emit(turn(1, 0)(m)) for m in made], 0))
    return emit(op.subtract(scalar(1.0), whole))


def _turned_numpy(x: np.ndarray) -> np.ndarray:
    weights = np.concatenate([array(w, 4, w) for w in (2, 3)], 1).astype("float64")
    return 1 - (x @ weights).T


def _constant_first(emit: Any, x: Any) -> Any:
    y = emit(op.subtract(const(array(0, 3)), emit(turn(0, 2, 1)(x))))
    return emit(turn(0, 2, 1)(y))


def _rms_norm_scaled_first(emit: Any, x: Any) -> Any:
    """The scale times the inverse, which is a power, and then x."""
    shifted = emit(op.add(scalar(1e-5), emit(op.mean(emit(op.square(x)), [-1], True))))
    inverse = emit(op.power(shifted, scalar(-0.5)))
    return emit(op.multiply(emit(op.multiply(const(array(1, 4)), inverse)), x))


def _rms_norm_reciprocal(emit: Any, x: Any) -> Any:
    """As ONNX has it: Sqrt, Reciprocal, and the scale on the left."""
    mean = emit(op.mean(emit(op.multiply(x, x)), [-1], True))
    inverse = emit(op.divide(scalar(1.0), emit(op.sqrt(emit(op.add(mean, scalar(1e-5)))))))
    return emit(op.multiply(const(array(1, 4)), emit(op.multiply(x, inverse))))


def _rms_norm_of_plane(emit: Any, x: Any) -> Any:
    mean = emit(op.mean(emit(op.multiply(x, x)), [1, 2], True))
    normal = emit(op.divide(x, emit(op.sqrt(emit(op.add(mean, scalar(0.1)))))))
    return emit(op.multiply(normal, const(array(1, 3, 4))))


VARIANTS = (
    Case("rms_norm", _X, rms_norm(divide=True), ["nn.rms_norm"], rms_norm_numpy),
    Case("rms_norm", _X, _rms_norm_scaled_first, ["nn.rms_norm"], rms_norm_numpy),
    Case("rms_norm", _X, _rms_norm_reciprocal, ["nn.rms_norm"], rms_norm_numpy),
    Case("rms_norm", _X, _rms_norm_of_plane, ["nn.rms_norm"],
         lambda x: x / np.sqrt((x**2).mean((1, 2), keepdims=True) + 0.1) * array(1, 3, 4)),
    Case("fractional_power", _X, _power(0.5), ["sqrt"], np.sqrt, low=0.0),
    Case("fractional_power", _X, _power(-0.5), ["rsqrt"], lambda x: x**-0.5, low=0.5),
    Case("fractional_power", _X, _power(0.25), ["sqrt", "sqrt"], lambda x: x**0.25, low=0.0),
    Case("power", _X, _power(4.0), ["multiply", "multiply"], lambda x: x**4),
    Case("power", _X, _power(2.0), ["multiply"], lambda x: x**2),
    Case("power", _X, _power(-1.0), ["divide"], lambda x: 1 / x, low=0.5),
    Case("power", _X, _power(1.0), [], lambda x: x),
    Case("idempotent", _X, chain(op.negative, op.negative), [], lambda x: x),
    Case("idempotent", _X, chain(op.floor, op.floor), ["floor"], np.floor),
    Case("idempotent", _X, chain(op.sign, op.sign), ["sign"], np.sign),
    Case("identity", _X, chain(shaped(2, 3, 4)), [], lambda x: x),
    Case("identity", _X, lambda emit, x: emit(op.concat([x], 1)), [], lambda x: x),
    Case("sum_of_products", _XC, _reduced(op.sum, [1], True), ["sum", "multiply"],
         lambda x, c: (x * c).sum(1, keepdims=True)),
    Case("sum_of_products", _XC, _reduced(op.mean, [-2], False), ["mean", "squeeze", "multiply"],
         lambda x, c: (x * c).mean(1)),
    Case("transpose_across", _X, chain(turn(0, 2, 1), op.nn.relu, turn(0, 2, 1)), ["nn.relu"],
         lambda x: np.maximum(x, 0)),
    Case("transpose_across", _X, _constant_first, ["subtract"],
         lambda x: array(0, 3)[:, None] - x),
    Case("reshape_across", _X, chain(shaped(24), op.nn.relu, shaped(4, 6)),
         ["nn.relu", "reshape"], lambda x: np.maximum(x, 0).reshape(4, 6)),
    Case("reshape_across_matmul", _X,
         chain(shaped(6, 4), lambda x: op.matmul(x, const(array(1, 4, 5))), shaped(2, 3, 5)),
         ["matmul"], lambda x: x @ array(1, 4, 5).astype("float64")),
    Case("slice_of_concat", {"a": (2, 3, 4), "b": (2, 3, 4)}, _slice_inside, ["strided_slice"],
         lambda a, b: b[:, :2]),
    Case("concat_of_slices", _TENSOR, _with_x(part(1, 1, 3), part(1, 3, 5)),
         ["strided_slice", "concat"], lambda x: np.concatenate([x, x[:, 1:5]], 1)),
    Case("elementwise_over_concat", {"x": (5, 4)}, _turned,
         ["matmul", "subtract", "permute_dims"] * 2 + ["concat"], _turned_numpy),
    Case("transpose_over_slice", _X, chain(turn(2, 0, 1), part(0, 1, 3), turn(1, 2, 0)),
         ["strided_slice"], lambda x: x[:, :, 1:3]),
    Case("slices_of_concat", {"a": (2, 3, 4), "b": (2, 3, 4)}, _exact_parts, ["subtract"],
         lambda a, b: b - a),
    Case("pool_over_concat", _IMAGES, _average, ["nn.avg_pool2d", "nn.avg_pool2d", "concat"],
         _average_numpy),
)  # fmt: skip
