"""Padding with a constant, or with a tensor's own elements."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters import padding as onnx
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.relay.registry import OpCall, converts

_MODES = ("constant", "edge", "reflect")
_MIRRORS = {"SYMMETRIC": "symmetric", "REFLECT": "reflect"}


@converts("nn.pad", "dyn.nn.pad")
def convert_pad(call: OpCall) -> relax.Expr:
    """Convert a pad; negative widths crop."""
    data = call.tensor(0)
    mode = str(call.attr("pad_mode", "constant"))
    if mode not in _MODES:
        raise ModelError(f"pad_mode is {mode!r}; it must be one of {', '.join(_MODES)}")
    dynamic = call.name.startswith("dyn.")
    widths = _widths(call.known(1, "pad_width") if dynamic else call.required("pad_width"), data)
    if mode != "constant":
        return _copied(call, data, widths, "edge" if mode == "edge" else "reflect")
    # Before 0.8 the value was an attribute.
    position = 2 if dynamic else 1
    if position < len(call.args):
        value = call.known(position, "pad_value").item()
    else:
        value = call.attr("pad_value", 0)
    filler = const(np.asarray(value, dtype_of(data)))
    return call.onnx(onnx.convert_pad, [data, const(widths.T.reshape(-1)), filler])


@converts("nn.mirror_pad")
def convert_mirror_pad(call: OpCall) -> relax.Expr:
    """Convert a reflection with the edge repeated (SYMMETRIC) or not (REFLECT)."""
    mode = str(call.attr("mode", "SYMMETRIC"))
    if mode not in _MIRRORS:
        raise ModelError(f"mode is {mode!r}; it must be one of {', '.join(_MIRRORS)}")
    data = call.tensor(0)
    return _copied(call, data, _widths(call.required("pad_width"), data), _MIRRORS[mode])


def _widths(value: Any, data: relax.Expr) -> np.ndarray:
    """Widths as (dimensions, 2)."""
    widths = np.asarray(value, "int64")
    if widths.shape != (len(shape_of(data)), 2):
        raise ModelError(
            f"pad_width is {widths.tolist()}; it must be a pair for each of "
            f"{len(shape_of(data))} dimensions"
        )
    return widths


def _copied(call: OpCall, data: relax.Expr, widths: np.ndarray, mode: str) -> relax.Expr:
    """A gather of each padded axis."""
    named = cast(Literal["edge", "reflect", "symmetric"], mode)
    for axis, (begin, end) in enumerate(widths.tolist()):
        if begin < 0 or end < 0:
            raise ModelError(f"pad_width is {widths.tolist()}; only a constant pad may crop")
        if begin or end:
            indices = np.pad(np.arange(shape_of(data)[axis]), (begin, end), mode=named)
            data = call.emit(relax.op.take, data, const(indices, "int64"), axis, mode="clip")
    return data
