"""Blocks of positions moved into channels or batches, and back."""

from __future__ import annotations

from math import prod

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters import padding as onnx_padding
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.moves import permute, relayout, reshape
from tvm_ext.frontend.relay.registry import OpCall, converts

_MODES = ("DCR", "CRD")


@converts("nn.depth_to_space")
def convert_depth_to_space(call: OpCall) -> relax.Expr:
    """Convert (N, C*b*b, H, W) to (N, C, H*b, W*b); DCR has the block position major."""
    data, block, layout = _attributes(call)
    mode = str(call.attr("mode", "DCR"))
    if mode not in _MODES:
        raise ModelError(f"mode is {mode!r}; it must be one of {', '.join(_MODES)}")
    n, c, h, w = shape_of(data)
    c //= block * block
    if mode == "DCR":
        data = reshape(call.bb, data, (n, block, block, c, h, w))
        data = permute(call.bb, data, (0, 3, 4, 1, 5, 2))
    else:
        data = reshape(call.bb, data, (n, c, block, block, h, w))
        data = permute(call.bb, data, (0, 1, 4, 2, 5, 3))
    data = reshape(call.bb, data, (n, c, h * block, w * block))
    return relayout(call.bb, data, "NCHW", layout)


@converts("nn.space_to_depth")
def convert_space_to_depth(call: OpCall) -> relax.Expr:
    """Convert (N, C, H, W) to (N, b*b*C, H/b, W/b), the block position major."""
    data, b, layout = _attributes(call)
    n, c, h, w = shape_of(data)
    data = reshape(call.bb, data, (n, c, h // b, b, w // b, b))
    data = permute(call.bb, data, (0, 3, 5, 1, 2, 4))
    data = reshape(call.bb, data, (n, c * b * b, h // b, w // b))
    return relayout(call.bb, data, "NCHW", layout)


@converts("nn.space_to_batch_nd")
def convert_space_to_batch_nd(call: OpCall) -> relax.Expr:
    """Convert (N, S..., R...) to (prod(b)*N, S/b..., R...) after padding S."""
    data = call.tensor(0)
    blocks = [int(b) for b in call.required("block_shape")]
    rank, many = len(shape_of(data)), len(blocks)
    widths = np.zeros((rank, 2), "int64")
    widths[1 : 1 + many] = call.required("paddings")
    filler = const(np.asarray(call.attr("pad_value", 0), dtype_of(data)))
    data = call.onnx(onnx_padding.convert_pad, [data, const(widths.T.reshape(-1)), filler])
    shape = shape_of(data)
    split = [shape[0]]
    for size, block in zip(shape[1:], blocks, strict=False):
        split += [size // block, block]
    data = reshape(call.bb, data, [*split, *shape[1 + many :]])
    inner, outer = range(2, 2 * many + 1, 2), range(1, 2 * many + 1, 2)
    rest = range(2 * many + 1, 2 * many + len(shape[many:]))
    data = permute(call.bb, data, [*inner, 0, *outer, *rest])
    sizes = [size // block for size, block in zip(shape[1:], blocks, strict=False)]
    return reshape(call.bb, data, [shape[0] * prod(blocks), *sizes, *shape[1 + many :]])


@converts("nn.batch_to_space_nd")
def convert_batch_to_space_nd(call: OpCall) -> relax.Expr:
    """Convert (prod(b)*N, S..., R...) to (N, S*b..., R...), cropped."""
    data = call.tensor(0)
    blocks = [int(b) for b in call.required("block_shape")]
    shape, many = shape_of(data), len(blocks)
    batch = shape[0] // prod(blocks)
    data = reshape(call.bb, data, [*blocks, batch, *shape[1:]])
    order = [many]
    for i in range(many):
        order += [many + 1 + i, i]
    order += range(2 * many + 1, 2 * many + len(shape[many:]))
    data = permute(call.bb, data, order)
    sizes = [size * block for size, block in zip(shape[1:], blocks, strict=False)]
    data = reshape(call.bb, data, [batch, *sizes, *shape[1 + many :]])
    crops = np.asarray(call.required("crops"), "int64")
    if not crops.any():
        return data
    ends = [size - int(end) for size, (_, end) in zip(sizes, crops, strict=True)]
    return relax.op.strided_slice(
        data, list(range(1, 1 + many)), [int(begin) for begin, _ in crops], ends
    )


def _attributes(call: OpCall) -> tuple[relax.Expr, int, str]:
    """Data as NCHW, block size, and the layout that it had."""
    layout = str(call.attr("layout", "NCHW"))
    data = relayout(call.bb, call.tensor(0), layout, "NCHW")
    return data, int(call.required("block_size")), layout
