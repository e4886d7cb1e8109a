"""Interpolation: torch's modes said in the terms of ONNX Resize."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload
from tvm import relax

from tvm_ext.frontend.onnx_converters.resize import convert_resize
from tvm_ext.frontend.onnx_converters.values import const, shape_of
from tvm_ext.frontend.torch_registry import Call, converts

aten = torch.ops.aten


@converts(
    aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec
)  # fmt: skip
def convert_nearest(call: Call) -> relax.Expr:
    """Convert "nearest": the element at ``floor(i / scale)``."""
    if _whole_factors(call):
        attrs = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return _resized(call, mode="nearest", **attrs)
    return _taken(call, aten.upsample_nearest1d.vec)


@converts(
    aten._upsample_nearest_exact1d.vec,
    aten._upsample_nearest_exact2d.vec,
    aten._upsample_nearest_exact3d.vec,
)
def convert_nearest_exact(call: Call) -> relax.Expr:
    """Convert "nearest-exact": the element whose centre is nearest."""
    return _taken(call, aten._upsample_nearest_exact1d.vec)


@converts(
    aten.upsample_linear1d.vec, aten.upsample_bilinear2d.vec, aten.upsample_trilinear3d.vec
)  # fmt: skip
def convert_linear(call: Call) -> relax.Expr:
    """Convert "linear", "bilinear" and "trilinear"."""
    return _resized(call, mode="linear", coordinate_transformation_mode=_coordinates(call))


@converts(aten.upsample_bicubic2d.vec)
def convert_cubic(call: Call) -> relax.Expr:
    """Convert "bicubic", with Keys' parameter at -0.75."""
    return _resized(call, mode="cubic", coordinate_transformation_mode=_coordinates(call))


@converts(aten._upsample_bilinear2d_aa.vec)
def convert_linear_antialiased(call: Call) -> relax.Expr:
    """Convert "bilinear" with antialiasing."""
    return _antialiased(call, mode="linear")


@converts(aten._upsample_bicubic2d_aa.vec)
def convert_cubic_antialiased(call: Call) -> relax.Expr:
    """Convert "bicubic" with antialiasing, which torch does with parameter -0.5, as PIL."""
    return _antialiased(call, mode="cubic", cubic_coeff_a=-0.5)


def _whole_factors(call: Call) -> bool:
    return not any(m % n for n, m in zip(shape_of(call["input"]), call.shape, strict=True))


def _taken(call: Call, operator: OpOverload) -> relax.Expr:
    """Resize by `operator`, axis after axis.

    Its rounding decides which element is read, so that torch itself says it: for each axis it
    resizes the numbers of the axis's elements.
    """
    data = call["input"]
    sizes = shape_of(data)[2:]
    factors = call["scale_factors"] or [None] * len(sizes)
    for axis, (size, out_size, factor) in enumerate(
        zip(sizes, call.shape[2:], factors, strict=True), start=2
    ):
        numbers = torch.arange(size, dtype=torch.float32).reshape(1, 1, size)
        arguments = ([out_size], None) if factor is None else (None, [factor])
        indices = operator(numbers, *arguments).reshape(-1).to(torch.int64)
        data = call.emit(relax.op.take, data, const(indices.numpy()), axis, mode="clip")
    return data


def _antialiased(call: Call, **attrs: Any) -> relax.Expr:
    coordinates = _coordinates(call)
    return _resized(
        call,
        coordinate_transformation_mode=coordinates,
        antialias=1,
        exclude_outside=1,
        **attrs,
    )


def _coordinates(call: Call) -> str:
    return "align_corners" if call["align_corners"] else "half_pixel"


def _resized(call: Call, **attrs: Any) -> relax.Expr:
    """Resize to the shape that torch computed."""
    data = call["input"]
    factors = call["scale_factors"]
    if factors and attrs["coordinate_transformation_mode"] != "align_corners":
        # Torch steps by the factor that it was given, ONNX by the ratio of sizes unless given one.
        scales = const(np.asarray([1, 1, *factors], "float32"))
        return call.onnx(convert_resize, [data, None, scales], **attrs)
    sizes = const(np.asarray(call.shape, "int64"))
    return call.onnx(convert_resize, [data, None, None, sizes], **attrs)
