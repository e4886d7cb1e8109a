"""Reader of image.resize2d."""

from __future__ import annotations

from tvm import relax

from tvm_ext.anchors.anchor import Anchor, Shape, not_float32
from tvm_ext.passes import dataflow as df
from tvm_ext.schedules.resize import ResizeWorkload, linear_taps

# Coordinates and rounding under which nearest neighbour by whole factors repeats each element.
_REPEATING = (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))


def resize2d(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Enlargements of images by whole factors."""
    data, attrs = call.args[0], call.attrs
    if reason := not_float32(data):
        return reason
    if str(attrs.layout) != "NCHW":
        return f"layout {attrs.layout}; only NCHW"
    shape, mode = df.shape_of(data), str(attrs.coordinate_transformation_mode)
    factors = (out_shape[2] // shape[2], out_shape[3] // shape[3])
    if out_shape[2:] != (shape[2] * factors[0], shape[3] * factors[1]):
        return f"{shape[2:]} to {out_shape[2:]} isn't by whole factors"
    method = str(attrs.method)
    if method == "nearest_neighbor":
        rounding = str(attrs.rounding_method)
        if (mode, rounding) not in _REPEATING:
            return f"coordinates {mode} rounded by {rounding!r}"
        return Anchor(ResizeWorkload("nearest", shape, factors), (data,))
    if method != "linear" or mode not in ("half_pixel", "asymmetric"):
        return f"method {method} with coordinates {mode}"
    rows, columns = (
        linear_taps(size, factor, mode == "half_pixel")
        for size, factor in zip(shape[2:], factors, strict=True)
    )
    return Anchor(ResizeWorkload("linear", shape, factors), (data,), (*rows, *columns))
