"""Reader of image.resize2d."""

from __future__ import annotations

from tvm import relax

from tvm_ext.anchors.anchor import Anchor, Shape, not_float32
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.enlarging import takes_linear, takes_nearest, whole_factors
from tvm_ext.schedules.resize import ResizeWorkload, linear_taps


def resize2d(call: relax.Call, out_shape: Shape) -> Anchor | str:
    """Enlargements of images by whole factors."""
    data, attrs = call.args[0], call.attrs
    if reason := not_float32(data):
        return reason
    if str(attrs.layout) != "NCHW":
        return f"layout {attrs.layout}; only NCHW"
    shape, mode = df.shape_of(data), str(attrs.coordinate_transformation_mode)
    factors = whole_factors(call)
    if factors is None:
        return f"{shape[2:]} to {out_shape[2:]} isn't by whole factors"
    method = str(attrs.method)
    if method == "nearest_neighbor":
        if not takes_nearest(call):
            return f"coordinates {mode} rounded by {str(attrs.rounding_method)!r}"
        return Anchor(ResizeWorkload("nearest", shape, factors), (data,))
    if not takes_linear(call):
        return f"method {method} with coordinates {mode}"
    rows, columns = (
        linear_taps(size, factor, mode == "half_pixel")
        for size, factor in zip(shape[2:], factors, strict=True)
    )
    return Anchor(ResizeWorkload("linear", shape, factors), (data,), (*rows, *columns))
