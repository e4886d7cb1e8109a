"""Images enlarged, shrunk and sampled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters import resize as onnx
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.moves import relayout, reshape
from tvm_ext.frontend.relay.converters.windows import SPATIAL
from tvm_ext.frontend.relay.registry import OpCall, converts

_METHODS = {
    "nearest_neighbor": "nearest_neighbor",
    "nearest": "nearest_neighbor",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}
_COORDINATES = ("half_pixel", "align_corners", "asymmetric")
# Relay's names -> Relax's, whose "round" takes halves to the even number.
_ROUNDINGS = {
    "round": "round_prefer_ceil",
    "floor": "floor",
    "ceil": "ceil",
    "round_prefer_floor": "round_prefer_floor",
    "round_prefer_ceil": "round_prefer_ceil",
}


@converts("nn.upsampling", "nn.upsampling3d", "dyn.nn.upsampling", "dyn.nn.upsampling3d")
def convert_upsampling(call: OpCall) -> relax.Expr:
    """Convert the enlargement by a factor for each spatial dimension."""
    rank = 3 if call.name.endswith("3d") else 2
    layout = str(call.attr("layout", f"NC{SPATIAL[rank]}"))
    data = relayout(call.bb, call.tensor(0), layout, f"NC{SPATIAL[rank]}")
    if call.name.startswith("dyn."):
        factors = [float(call.known(i + 1, "scale").item()) for i in range(rank)]
    else:
        names = [f"scale_{letter.lower()}" for letter in SPATIAL[rank]]
        factors = [float(call.required(name)) for name in names]
    # Half a pixel rounds up.
    sizes = [int(n * f + 0.5) for n, f in zip(shape_of(data)[2:], factors, strict=True)]
    if rank == 3:
        coordinates = str(call.attr("coordinate_transformation_mode", "half_pixel"))
    else:
        coordinates = "align_corners" if call.attr("align_corners", False) else "asymmetric"
    method = str(call.attr("method", "nearest_neighbor"))
    out = _resized(call, data, sizes, method, coordinates, "", -0.5)
    return relayout(call.bb, out, f"NC{SPATIAL[rank]}", layout)


@converts("image.resize1d", "image.resize2d", "image.resize3d", "dyn.image.resize2d")
def convert_resize(call: OpCall) -> relax.Expr:
    """Convert the enlargement or reduction to a given size."""
    rank = next(n for n in SPATIAL if f"{n}d" in call.name)
    plain = f"NC{SPATIAL[rank]}"
    layout = str(call.attr("layout", plain))
    data = relayout(call.bb, call.tensor(0), layout, plain)
    out = _resized(
        call,
        data,
        call.ints("size", 1),
        str(call.attr("method", "linear")),
        str(call.attr("coordinate_transformation_mode", "half_pixel")),
        str(call.attr("rounding_method", "")),
        float(call.attr("cubic_alpha", -0.5)),
    )
    dtype = call.dtype("out_dtype", dtype_of(call.tensor(0)))
    return relayout(call.bb, call.cast(out, dtype), plain, layout)


@converts("image.crop_and_resize")
def convert_crop_and_resize(call: OpCall) -> relax.Expr:
    """Convert boxes that are known at import, (y1, x1, y2, x2) of 1, resized one by one."""
    layout = str(call.attr("layout", "NCHW"))
    data = relayout(call.bb, call.tensor(0), layout, "NCHW")
    boxes, images = call.known(1, "boxes"), call.known(2, "box_indices")
    method = _method(str(call.attr("method", "bilinear")))
    if method == "cubic":
        raise ModelError("method is 'cubic'; it must be bilinear or nearest_neighbor")
    sizes = [int(n) for n in call.required("crop_size")]
    channels = shape_of(data)[1]
    crops = []
    for box, image in zip(boxes.astype("float32"), images, strict=True):
        begin = int(image)
        one = call.emit(relax.op.strided_slice, data, [0], [begin], [begin + 1])
        roi = np.asarray([0, 0, box[0], box[1], 1, 1, box[2], box[3]], "float32")
        crops.append(
            call.onnx(
                onnx.convert_resize,
                [one, const(roi), None, const(np.asarray([1, channels, *sizes], "int64"))],
                mode="nearest" if method == "nearest_neighbor" else "linear",
                nearest_mode="round_prefer_ceil",
                coordinate_transformation_mode="tf_crop_and_resize",
                extrapolation_value=float(call.attr("extrapolation_value", 0.0)),
            )
        )
    out = crops[0] if len(crops) == 1 else call.emit(relax.op.concat, crops, 0)
    dtype = call.dtype("out_dtype", dtype_of(call.tensor(0)))
    return relayout(call.bb, call.cast(out, dtype), "NCHW", layout)


@converts("image.grid_sample")
def convert_grid_sample(call: OpCall) -> relax.Expr:
    """Convert samples of images at a grid's positions, (N, 2, H, W) from -1 to 1."""
    data, grid = call.tensor(0), call.tensor(1)
    if len(shape_of(data)) != 4:
        raise ModelError(f"the data has {len(shape_of(data))} dimensions; it must have 4")
    layout = str(call.attr("layout", "NCHW"))
    if layout != "NCHW":
        raise ModelError(f"layout is {layout!r}; it must be NCHW")
    return relax.op.image.grid_sample(
        data,
        grid,
        method=str(call.attr("method", "bilinear")),
        layout=layout,
        padding_mode=str(call.attr("padding_mode", "zeros")),
        align_corners=bool(call.attr("align_corners", True)),
    )


@converts("image.affine_grid")
def convert_affine_grid(call: OpCall) -> relax.Expr:
    """Convert (N, 2, 3) transformations to the grids that they make, corners on corners."""
    size = [int(n) for n in call.required("target_shape")]
    return relax.op.image.affine_grid(call.tensor(0), tuple(size), align_corners=True)


def _resized(
    call: OpCall,
    data: relax.Expr,
    sizes: Sequence[int],
    method: str,
    coordinates: str,
    rounding: str,
    alpha: float,
) -> relax.Expr:
    """Resize the spatial dimensions of a tensor with channels first."""
    method = _method(method)
    if coordinates not in _COORDINATES:
        raise ModelError(
            f"coordinate_transformation_mode is {coordinates!r}; it must be one of "
            f"{', '.join(_COORDINATES)}"
        )
    # Relay's own default goes by the coordinates.
    rounding = rounding or ("round" if coordinates == "align_corners" else "floor")
    if rounding not in _ROUNDINGS:
        raise ModelError(
            f"rounding_method is {rounding!r}; it must be one of {', '.join(_ROUNDINGS)}"
        )
    shape, rank = shape_of(data), len(sizes)
    if rank == 1:
        # A row is an image of one line.
        data = reshape(call.bb, data, (*shape[:2], 1, shape[2]))
    operator = relax.op.image.resize3d if rank == 3 else relax.op.image.resize2d
    out = call.emit(
        operator,
        data,
        relax.ShapeExpr([1, *sizes] if rank == 1 else list(sizes)),
        layout="NCDHW" if rank == 3 else "NCHW",
        method=method,
        coordinate_transformation_mode=coordinates,
        rounding_method=_ROUNDINGS[rounding],
        cubic_alpha=alpha,
        cubic_exclude=int(bool(call.attr("cubic_exclude", 0))),
    )
    return reshape(call.bb, out, (*shape[:2], *sizes))


def _method(name: str) -> str:
    if name not in _METHODS:
        raise ModelError(f"method is {name!r}; it must be one of {', '.join(_METHODS)}")
    return _METHODS[name]
