"""Deformable convolution: every tap of the window is sampled at a place of its own."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, scalar, shape_of
from tvm_ext.frontend.relay.converters.moves import permute, relayout, reshape
from tvm_ext.frontend.relay.converters.windows import pads, per_axis
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("nn.deformable_conv2d")
def convert_deformable_conv2d(call: OpCall) -> relax.Expr:
    """Convert to samples between pixels, and one matrix product with the weights.

    Offsets are (N, deformable groups * taps * 2, OH, OW): for each tap its shift down, then right.
    A sample outside of the image is 0.
    """
    groups = int(call.attr("groups", 1))
    if groups != 1:
        raise ModelError(f"groups is {groups}; a deformable convolution must have 1")
    layout = str(call.attr("data_layout", "NCHW"))
    data, offset = (relayout(call.bb, call.tensor(i), layout, "NCHW") for i in range(2))
    kernel_layout = str(call.attr("kernel_layout", "OIHW"))
    weight = relayout(call.bb, call.tensor(2), kernel_layout, "OIHW")
    filters, channels, kernel_h, kernel_w = shape_of(weight)
    batch, parts = shape_of(data)[0], int(call.attr("deformable_groups", 1))
    height, width = shape_of(offset)[2:]
    taps, part = kernel_h * kernel_w, channels // parts
    samples = _sampled(call, data, *_places(call, offset, (kernel_h, kernel_w), parts), parts)
    # (N * parts, taps * OH * OW, C / parts) -> one row a pixel, one column a weight.
    samples = reshape(call.bb, samples, (batch, parts, taps, height, width, part))
    samples = permute(call.bb, samples, (0, 3, 4, 1, 5, 2))
    samples = reshape(call.bb, samples, (batch * height * width, channels * taps))
    weight = permute(call.bb, reshape(call.bb, weight, (filters, channels * taps)), (1, 0))
    dtype = call.dtype("out_dtype", dtype_of(data))
    out = call.emit(relax.op.matmul, call.cast(samples, dtype), call.cast(weight, dtype))
    out = reshape(call.bb, out, (batch, height, width, filters))
    return relayout(call.bb, out, "NHWC", str(call.attr("out_layout", "") or layout))


def _places(
    call: OpCall, offset: relax.Expr, kernel: tuple[int, int], parts: int
) -> tuple[relax.Expr, relax.Expr]:
    """Rows and columns that are sampled, (N * parts, taps * OH * OW) each."""
    batch, _, height, width = shape_of(offset)
    strides, dilations = per_axis(call, "strides", 2), per_axis(call, "dilation", 2)
    top, left, _, _ = pads(call, 2)
    taps = kernel[0] * kernel[1]
    shifts = reshape(call.bb, offset, (batch * parts, taps, 2, height, width))
    y = np.arange(height) * strides[0] - top
    x = np.arange(width) * strides[1] - left
    rows = np.arange(kernel[0])[:, None, None, None] * dilations[0] + y[:, None]
    columns = np.arange(kernel[1])[:, None, None] * dilations[1] + x
    places = []
    for which, base in enumerate((rows, columns)):
        shift = call.emit(relax.op.strided_slice, shifts, [2], [which], [which + 1])
        shift = reshape(call.bb, shift, (batch * parts, taps, height, width))
        full = np.broadcast_to(base, (*kernel, height, width)).reshape(taps, height, width)
        place = call.emit(relax.op.add, shift, const(full, dtype_of(offset)))
        places.append(reshape(call.bb, place, (batch * parts, taps * height * width)))
    return places[0], places[1]


def _sampled(
    call: OpCall, data: relax.Expr, rows: relax.Expr, columns: relax.Expr, parts: int
) -> relax.Expr:
    """Bilinear samples, (N * parts, P, C / parts), of (N, C, H, W) at P places."""
    batch, channels, height, width = shape_of(data)
    pixels = reshape(call.bb, data, (batch * parts, channels // parts, height * width))
    pixels = permute(call.bb, pixels, (0, 2, 1))
    inside = None
    ends = []
    for place, size in ((rows, height), (columns, width)):
        within = call.emit(
            relax.op.logical_and,
            call.emit(relax.op.greater_equal, place, scalar(0, place)),
            call.emit(relax.op.less, place, scalar(size, place)),
        )
        inside = within if inside is None else call.emit(relax.op.logical_and, inside, within)
        below = call.emit(relax.op.floor, place)
        share = call.emit(relax.op.subtract, place, below)
        above = call.emit(relax.op.add, below, scalar(1, below))
        near, far = (
            call.cast(call.emit(relax.op.clip, end, 0.0, float(size - 1)), "int64")
            for end in (below, above)
        )
        rest = call.emit(relax.op.subtract, scalar(1, share), share)
        # Behind the last pixel there are zeros.
        last = call.emit(relax.op.less, above, scalar(size, above))
        share = call.emit(relax.op.where, last, share, scalar(0, share))
        ends.append(((near, rest), (far, share)))
    result = None
    for row, row_share in ends[0]:
        for column, column_share in ends[1]:
            index = call.emit(relax.op.multiply, row, scalar(width, row))
            index = call.emit(relax.op.add, index, column)
            index = call.emit(relax.op.expand_dims, index, -1)
            corner = call.emit(relax.op.gather_nd, pixels, index, 1)
            share = call.emit(relax.op.multiply, row_share, column_share)
            share = call.emit(relax.op.where, inside, share, scalar(0, share))
            part = call.emit(relax.op.multiply, corner, _column(call, share, dtype_of(data)))
            result = part if result is None else call.emit(relax.op.add, result, part)
    return result


def _column(call: OpCall, share: relax.Expr, dtype: str) -> relax.Expr:
    return call.cast(call.emit(relax.op.expand_dims, share, -1), dtype)
