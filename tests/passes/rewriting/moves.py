"""Cases of rules that only move elements: transposes, reshapes, slices, concatenations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from relax_models import array, const
from tvm.relax import op

from tests.passes.rewriting.case import Body, Case, Shapes, chain, part, shaped, turn

_X: Shapes = {"x": (2, 3, 4)}
_AB: Shapes = {"a": (2, 3, 4), "b": (2, 3, 4)}
_TENSOR: Shapes = {"x": (2, 6, 4)}


def _add(value: np.ndarray) -> Callable[[Any], Any]:
    return lambda x: op.add(x, const(value))


def _both(p: tuple[int, ...], q: tuple[int, ...]) -> Body:
    return lambda emit, a, b: emit(op.subtract(emit(turn(*p)(a)), emit(turn(*q)(b))))


def _concat(*parts: Callable[[Any], Any]) -> Body:
    """Of parts of x, x itself first where there is no more than one."""
    return lambda emit, x: emit(op.concat([emit(p(x)) for p in parts], 1))


def _slice_of_concat(axis: int, begin: int, end: int) -> Body:
    def body(emit: Any, a: Any, b: Any) -> Any:
        return emit(part(axis, begin, end)(emit(op.concat([a, b], 1))))

    return body


def _nested(inner: int, outer: int) -> Body:
    def body(emit: Any, a: Any, b: Any) -> Any:
        return emit(op.concat([emit(op.concat([a, b], inner)), emit(op.concat([b, a], 1))], outer))

    return body


def _product(rows: tuple[int, ...], bias: tuple[int, ...], out: tuple[int, ...]) -> Body:
    return chain(
        shaped(*rows),
        lambda x: op.matmul(x, const(array(1, 4, 5))),
        _add(array(2, *bias)),
        shaped(*out),
    )


def _pool(axis: int, operator: Any = op.nn.max_pool2d, shared: bool = False) -> Body:
    def body(emit: Any, a: Any, b: Any) -> Any:
        whole = emit(op.concat([a, b], axis))
        pooled = emit(operator(whole, (2, 2), (2, 2)))
        return emit(op.add(emit(op.max(whole)), pooled)) if shared else pooled

    return body


def _padded(widths: list[int], value: float = 0.0) -> Body:
    return chain(
        lambda x: op.nn.pad(x, widths, "constant", value),
        lambda x: op.nn.conv2d(x, const(array(3, 2, 3, 3, 3)), strides=2, padding=1),
    )


def _conv_numpy(x: np.ndarray) -> np.ndarray:
    x = np.pad(x, [(0, 0), (0, 0), (1, 2), (3, 1)])
    x = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    return np.einsum("nchwij,kcij->nkhw", windows, array(3, 2, 3, 3, 3).astype("float64"))


def _pool_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = np.concatenate([a, b], 1)
    return x.reshape(1, 5, 2, 2, 3, 2).max((3, 5))


def _turned_and_read(emit: Any, x: Any) -> Any:
    turned = emit(turn(2, 0, 1)(x))
    cut = emit(turn(0, 2, 1)(emit(part(0, 1, 2)(turned))))
    return emit(op.add(emit(op.max(turned)), cut))


def _turned(p: tuple[int, ...], q: tuple[int, ...], last: tuple[int, ...]) -> Body:
    """Two values turned, put together along the last axis, and turned again."""

    def body(emit: Any, a: Any, b: Any) -> Any:
        parts = [emit(turn(*p)(a)), emit(turn(*q)(b)) if q else b]
        return emit(turn(*last)(emit(op.concat(parts, 2))))

    return body


def _mixed(
    then: Callable[[Any], Any], pool: Callable[..., Any] = op.nn.avg_pool2d, shared: bool = False
) -> Body:
    """An operator on a concatenation of a convolution of x and a pool of it."""

    def body(emit: Any, x: Any) -> Any:
        y = emit(op.nn.conv2d(x, const(array(3, 3, 2, 1, 1))))
        whole = emit(op.concat([emit(op.exp(y)), emit(pool(x, (1, 1)))], 1))
        after = emit(then(whole))
        return emit(op.add(emit(op.max(whole)), after)) if shared else after

    return body


def _mixed_numpy(x: np.ndarray) -> np.ndarray:
    y = np.einsum("nchw,kc->nkhw", x, array(3, 3, 2, 1, 1)[:, :, 0, 0].astype("float64"))
    return np.concatenate([np.exp(y), x], 1) * array(4, 5, 1, 1)


def _heads(then: Callable[[Any], Any]) -> Body:
    """Two products whose results are turned before they are put together."""

    def body(emit: Any, x: Any) -> Any:
        made = [emit(op.matmul(x, const(array(w, 4, w)))) for w in (2, 3)]
        return emit(then(emit(op.concat([emit(op.permute_dims(m, [1, 0])) for m in made], 0))))

    return body


def _parts(*bounds: tuple[int, int], axis: int = 1, whole: bool = False) -> Body:
    """Parts of a concatenation of a and b, each turned so that nothing else is found."""

    def body(emit: Any, a: Any, b: Any) -> Any:
        joined = emit(op.concat([a, b], 1))
        made = [emit(op.max(emit(part(axis, *each)(joined)), [1])) for each in bounds]
        made += [emit(op.max(joined, [1]))] if whole else []
        return emit(op.concat(made, 1))

    return body


def _parts_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = np.concatenate([a, b], 1)
    return np.concatenate([x[:, i:j].max(1) for i, j in ((0, 2), (2, 6), (3, 6))], 1)


_IMAGES: Shapes = {"a": (1, 2, 4, 6), "b": (1, 3, 4, 6)}
_SQUARE: Shapes = {"a": (1, 2, 4, 6), "b": (1, 2, 4, 6)}
_BIAS = array(0, 4)
_COLUMN = array(0, 3, 1)
_PIXELS: Shapes = {"x": (1, 2, 4, 6)}
_SCALE = array(4, 5, 1, 1)

MOVES = (
    Case("transpose_pair", _X, chain(turn(1, 2, 0), turn(0, 2, 1)), ["permute_dims"],
         lambda x: x.transpose(1, 2, 0).transpose(0, 2, 1), {
        "": (_X, chain(turn(1, 2, 0), op.nn.relu)),
    }),
    Case("transpose_across", _X, chain(turn(0, 2, 1), _add(array(0, 3)), turn(0, 2, 1)), ["add"],
         lambda x: x + array(0, 3)[:, None], {
        "broadcasts x": ({"x": (2, 1, 4)},
                         chain(turn(0, 2, 1), _add(array(0, 3)), turn(0, 2, 1))),
    }),
    Case("transpose_both", _AB, _both((2, 0, 1), (2, 0, 1)), ["subtract", "permute_dims"],
         lambda a, b: (a - b).transpose(2, 0, 1), {
        "differ": ({"a": (2, 3, 3), "b": (2, 3, 3)}, _both((0, 1, 2), (0, 2, 1))),
        "broadcast": ({"a": (2, 3, 4), "b": (2, 3, 1)}, _both((1, 0, 2), (1, 0, 2))),
    }),
    Case("unit_transpose", {"x": (2, 1, 4)}, chain(turn(1, 0, 2)), ["reshape"],
         lambda x: x.transpose(1, 0, 2), {"elements move": (_X, chain(turn(1, 0, 2)))}),
    Case("reshape_pair", _X, chain(shaped(6, 4), lambda x: op.expand_dims(x, [0])), ["reshape"],
         lambda x: x.reshape(1, 6, 4), {"": (_X, chain(shaped(6, 4), op.nn.relu))}),
    Case("reshape_across", _X, chain(shaped(6, 4), _add(_BIAS), shaped(2, 3, 4)), ["add"],
         lambda x: x + _BIAS, {
        "dimensions that change": (
            {"x": (6, 4)}, chain(shaped(2, 3, 4), _add(_COLUMN), shaped(6, 4))
        ),
    }),
    Case("reshape_across_matmul", _X, _product((6, 4), (1, 5), (2, 3, 5)), ["matmul", "add"],
         lambda x: x @ array(1, 4, 5).astype("float64") + array(2, 1, 5), {
        "doesn't undo": (_X, _product((6, 4), (5,), (3, 2, 5))),
        "varies along the rows": (_X, _product((6, 4), (6, 5), (2, 3, 5))),
    }),
    Case("slice_of_slice", _TENSOR, chain(part(1, 1, 5), part(1, 2, 4)), ["strided_slice"],
         lambda x: x[:, 3:5], {
        "different axes": (_TENSOR, chain(part(1, 1, 5), part(2, 2, 4))),
    }),
    Case("slice_of_concat", _AB, _slice_of_concat(1, 3, 6), [], lambda a, b: b, {
        "several parts": (_AB, _slice_of_concat(1, 2, 4)),
        "another axis": (_AB, _slice_of_concat(2, 0, 2)),
    }),
    Case("concat_of_slices", _TENSOR, _concat(part(1, 0, 2), part(1, 2, 5), part(1, 5, 6)), [],
         lambda x: x, {
        "no two parts are adjacent": (_TENSOR, _concat(part(1, 3, 6), part(1, 0, 3))),
    }),
    Case("concat_of_concat", _AB, _nested(1, 1), ["concat"],
         lambda a, b: np.concatenate([a, b, b, a], 1), {
        "the axes differ": (_SQUARE, _nested(1, 2)),
    }),
    Case("pool_over_concat", _IMAGES, _pool(1), ["nn.max_pool2d", "nn.max_pool2d", "concat"],
         _pool_numpy, {
        "aren't channels": (_SQUARE, _pool(2)),
        "saves nothing": (_IMAGES, _pool(1, op.nn.avg_pool2d, shared=True)),
        # Its parts are computed in place as it is.
        "it saves nothing": ({"a": (1, 16, 4, 6), "b": (1, 3, 4, 6)}, _pool(1)),
    }),
    Case("transpose_over_concat", {"a": (2, 3, 4), "b": (2, 5, 4)},
         _turned((2, 0, 1), (2, 0, 1), (1, 2, 0)), ["concat"],
         lambda a, b: np.concatenate([a, b], 1), {
        "the transposes differ": (
            {"a": (2, 2, 4), "b": (2, 2, 4)}, _turned((2, 0, 1), (2, 1, 0), (1, 2, 0))
        ),
        "a part isn't transposed": (
            {"a": (2, 3, 4), "b": (4, 2, 3)}, _turned((2, 0, 1), (), (1, 2, 0))
        ),
    }),
    Case("transpose_over_slice", _X, chain(turn(2, 0, 1), part(0, 1, 3), turn(0, 2, 1)),
         ["strided_slice", "permute_dims"], lambda x: x[:, :, 1:3].transpose(2, 1, 0), {
        "isn't one run": (_X, chain(
            turn(2, 0, 1), lambda x: op.strided_slice(x, [0], [0], [4], [2]), turn(0, 2, 1)
        )),
        "saves nothing": (_X, _turned_and_read),
    }),
    Case("elementwise_over_concat", _PIXELS, _mixed(lambda x: op.multiply(x, const(_SCALE))),
         ["nn.conv2d", "exp", "multiply", "nn.avg_pool2d", "multiply", "concat"], _mixed_numpy, {
        "part 1 isn't made": (_PIXELS, _mixed(op.nn.relu, lambda x, _: op.flip(x, 1))),
        "part 0 isn't made": (_AB, lambda emit, a, b: emit(op.exp(emit(op.concat([a, b], 1))))),
        "part 0 is moved, but not": (
            {"x": (5, 4)}, _heads(lambda x: op.multiply(x, const(array(4, 5))))
        ),
        "another shape or type": (_PIXELS, _mixed(lambda x: op.astype(x, "float16"))),
        "saves nothing": (_PIXELS, _mixed(op.nn.relu, shared=True)),
    }),
    Case("slices_of_concat", _AB, _parts((0, 2), (2, 6), (3, 6)),
         ["strided_slice", "strided_slice", "concat", "max", "max", "max", "concat"],
         _parts_numpy, {
        "others read": (_AB, _parts((0, 2), (2, 6), whole=True)),
        "saves nothing": ({"a": (1, 16, 4), "b": (1, 16, 4)}, _parts((0, 17), (8, 32))),
        "": (_AB, _parts((0, 2), (2, 3), axis=2)),
    }),
    Case("pad_into_conv", {"x": (1, 3, 7, 8)}, _padded([0, 0, 0, 0, 1, 2, 3, 1]), ["nn.conv2d"],
         _conv_numpy, {
        "isn't of zeros": ({"x": (1, 3, 7, 8)}, _padded([0, 0, 0, 0, 1, 2, 3, 1], 1.0)),
        "channels are padded": ({"x": (1, 2, 7, 8)}, _padded([0, 0, 1, 0, 1, 2, 3, 1])),
    }),
)  # fmt: skip
