"""Cases of rules that merge operators of the same input."""

from __future__ import annotations

from typing import Any

import numpy as np
from relax_models import array, const
from tvm.relax import op

from tests.passes.rewriting.case import Body, Case, Shapes

_ROW: Shapes = {"x": (1, 8)}
_ROWS: Shapes = {"x": (3, 8)}
_IMAGE: Shapes = {"x": (1, 8, 5, 5)}


def _matmuls(*widths: int) -> Body:
    """exp(x @ v + a) as it is, the other products multiplied by it column by column."""

    def body(emit: Any, x: Any) -> Any:
        made = [
            emit(op.add(emit(op.matmul(x, const(array(w, 8, w)))), const(array(100 + w, w))))
            for w in widths
        ]
        return emit(op.concat([emit(op.nn.softmax(m)) for m in made], 1))

    return body


def _matmuls_numpy(x: np.ndarray) -> np.ndarray:
    parts = []
    for w in (32, 16):
        e = np.exp(x @ array(w, 8, w).astype("float64") + array(100 + w, w))
        parts.append(e / e.sum(1, keepdims=True))
    return np.concatenate(parts, 1)


def _convs(
    *widths: int, kernel: int = 1, after: Any = op.nn.relu, then: Any = op.nn.softmax
) -> Body:
    """Convolutions of one image, activated; then something that can't be merged with them."""

    def body(emit: Any, x: Any) -> Any:
        made = []
        for i, w in enumerate(widths):
            y = emit(op.nn.conv2d(x, const(array(w, w, 8, kernel, kernel))))
            y = emit(op.add(y, const(array(100 + w, 1, w, 1, 1))))
            y = emit((op.tanh if i and after is None else op.nn.relu)(y))
            made.append(emit(then(y)) if then is not None else y)
        return emit(op.concat(made, 1))

    return body


def _convs_numpy(x: np.ndarray) -> np.ndarray:
    parts = []
    for w in (32, 16):
        y = np.einsum("nchw,kc->nkhw", x, array(w, w, 8, 1, 1)[:, :, 0, 0].astype("float64"))
        y = np.exp(np.maximum(y + array(100 + w, 1, w, 1, 1), 0))
        parts.append(y / y.sum(3, keepdims=True))
    return np.concatenate(parts, 1)


def _pixel(pixels: int = 1, groups: int = 1) -> Body:
    def body(emit: Any, x: Any) -> Any:
        x = x if pixels == 1 else emit(op.tile(x, (1, 1, pixels, 1)))
        y = emit(op.nn.conv2d(x, const(array(1, 6, 8 // groups, 1, 1)), groups=groups))
        return emit(op.nn.relu(emit(op.add(y, const(array(2, 6, 1, 1))))))

    return body


def _pixel_numpy(x: np.ndarray) -> np.ndarray:
    y = x[:, :, 0, 0] @ array(1, 6, 8).astype("float64").T + array(2, 6)
    return np.maximum(y, 0)[:, :, None, None]


_PIXEL: Shapes = {"x": (3, 8, 1, 1)}

MERGES = (
    Case("conv_as_matmul", _PIXEL, _pixel(), ["reshape", "matmul", "add", "nn.relu", "reshape"],
         _pixel_numpy, {
        "more pixels": (_PIXEL, _pixel(pixels=4)),
        "2 groups": (_PIXEL, _pixel(groups=2)),
    }),
    Case("merge_matmuls", _ROW, _matmuls(32, 16),
         ["matmul", "add", "strided_slice", "strided_slice", "nn.softmax", "nn.softmax", "concat"],
         _matmuls_numpy, {
        "its slices move": (_ROWS, _matmuls(32, 16)),
    }),
    Case("merge_convs", _IMAGE, _convs(32, 16),
         ["nn.conv2d", "add", "nn.relu", "strided_slice", "strided_slice", "nn.softmax",
          "nn.softmax", "concat"],
         _convs_numpy, {
        "move 4800 bytes more": (_IMAGE, _convs(8, 16)),
        "move 9600 bytes more": (_IMAGE, _convs(32, 16, after=None)),
        "move 19200 bytes more": (_IMAGE, _convs(32, 16, then=None)),
    }),
)  # fmt: skip
