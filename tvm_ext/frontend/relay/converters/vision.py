"""Operators of detectors: regions of interest, anchors, and Darknet's reorganisation."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.moves import permute, reshape
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("vision.yolo_reorg")
def convert_yolo_reorg(call: OpCall) -> relax.Expr:
    """Convert (N, C, H, W) to (N, C*s*s, H/s, W/s), Darknet's way.

    The data is seen as (N, C/s/s, H*s, W*s), from which every s-th pixel makes a channel.
    """
    data = call.tensor(0)
    n, c, h, w = shape_of(data)
    s = int(call.attr("stride", 1))
    if c % (s * s) or h % s or w % s:
        raise ModelError(f"stride is {s}; it must divide {h} and {w}, its square {c}")
    data = reshape(call.bb, data, (n, c // (s * s), h, s, w, s))
    data = permute(call.bb, data, (0, 3, 5, 1, 2, 4))
    return reshape(call.bb, data, (n, c * s * s, h // s, w // s))


@converts("vision.roi_align")
def convert_roi_align(call: OpCall) -> relax.Expr:
    """Convert averages (or maxima) of samples in bins of regions, (batch, x1, y1, x2, y2) each."""
    mode = str(call.attr("mode", "avg"))
    if mode not in ("avg", "max"):
        raise ModelError(f"mode is {mode!r}; it must be avg or max")
    return relax.op.vision.roi_align(
        call.tensor(0),
        call.tensor(1),
        tuple(int(n) for n in call.required("pooled_size")),
        float(call.required("spatial_scale")),
        int(call.attr("sample_ratio", -1)),
        False,
        _layout(call),
        mode,
    )


@converts("vision.roi_pool")
def convert_roi_pool(call: OpCall) -> relax.Expr:
    """Convert the maxima in bins of regions, (batch, x1, y1, x2, y2) each."""
    return relax.op.vision.roi_pool(
        call.tensor(0),
        call.tensor(1),
        tuple(int(n) for n in call.required("pooled_size")),
        float(call.required("spatial_scale")),
        _layout(call),
    )


@converts("vision.get_valid_counts")
def convert_get_valid_counts(call: OpCall) -> relax.Expr:
    """Convert boxes moved to the top where their score is above a threshold, and their number."""
    threshold = call.attr("score_threshold", 0)
    if len(call.args) > 1:
        threshold = call.known(1, "score_threshold").item()
    return relax.op.vision.get_valid_counts(
        call.tensor(0),
        float(threshold),
        int(call.attr("id_index", 0)),
        int(call.attr("score_index", 1)),
    )


@converts("vision.non_max_suppression")
def convert_non_max_suppression(call: OpCall) -> relax.Expr:
    """Convert the boxes that overlap no better one of their class, or their indices."""
    return relax.op.vision.non_max_suppression(
        call.tensor(0),
        call.tensor(1),
        call.tensor(2),
        int(call.known(3, "max_output_size").item()),
        float(call.known(4, "iou_threshold").item()),
        bool(call.attr("force_suppress", False)),
        int(call.attr("top_k", -1)),
        int(call.attr("coord_start", 2)),
        int(call.attr("score_index", 1)),
        int(call.attr("id_index", 0)),
        bool(call.attr("return_indices", True)),
        bool(call.attr("invalid_to_bottom", False)),
    )


@converts("vision.multibox_prior")
def convert_multibox_prior(call: OpCall) -> relax.Expr:
    """Convert to the anchors of each pixel, (1, H*W*A, 4) as (x1, y1, x2, y2) of 1.

    Every size with the first ratio, then the first size with every other ratio.
    """
    data = call.tensor(0)
    height, width = shape_of(data)[2:]
    sizes, ratios = (np.asarray(call.attr(name, [1.0]), "float64") for name in ("sizes", "ratios"))
    steps, offsets = call.attr("steps", [-1.0, -1.0]), call.attr("offsets", [0.5, 0.5])
    step_y, step_x = (
        float(step) if step > 0 else 1 / n for step, n in zip(steps, (height, width), strict=True)
    )
    roots = np.sqrt(np.concatenate([np.ones(len(sizes)), ratios[1:]]))
    scale = np.concatenate([sizes, np.full(len(ratios) - 1, sizes[0])])
    half_x, half_y = scale * height / width * roots / 2, scale / roots / 2
    y = ((np.arange(height) + offsets[0]) * step_y)[:, None, None]
    x = ((np.arange(width) + offsets[1]) * step_x)[None, :, None]
    boxes = np.stack(np.broadcast_arrays(x - half_x, y - half_y, x + half_x, y + half_y), -1)
    if call.attr("clip", False):
        boxes = boxes.clip(0, 1)
    return const(boxes.reshape(1, -1, 4), dtype_of(data))


def _layout(call: OpCall) -> str:
    layout = str(call.attr("layout", "NCHW"))
    if layout != "NCHW":
        raise ModelError(f"layout is {layout!r}; it must be NCHW")
    return layout
