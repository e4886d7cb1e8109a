"""Boxes of single-shot detectors, decoded from anchors."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import const, dtype_of, scalar, shape_of
from tvm_ext.frontend.relay.converters.moves import reshape
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("vision.multibox_transform_loc")
def convert_multibox_transform_loc(call: OpCall) -> list[relax.Expr]:
    """Convert to the boxes of the anchors whose best class is above a threshold, and their number.

    (N, classes, A) probabilities, (N, A * 4) offsets and (1, A, 4) anchors give (N, A, 6) rows of
    class, score and corners, the valid ones first and in order; the rows behind them are -1 (Relay
    leaves them undefined). Class 0 is the background, and isn't counted unless it is kept.
    """
    scores, offsets, anchors = (call.tensor(i) for i in range(3))
    batch, classes, count = shape_of(scores)
    keep = bool(call.attr("keep_background", False))
    if not keep:
        scores = call.emit(relax.op.strided_slice, scores, [1], [1], [classes])
    best = call.emit(relax.op.max, scores, [1])
    label = call.cast(call.emit(relax.op.argmax, scores, 1), dtype_of(offsets))
    above = call.emit(
        relax.op.greater_equal, best, scalar(float(call.attr("threshold", 0.01)), best)
    )
    boxes = _decoded(call, reshape(call.bb, offsets, (batch, count, 4)), anchors)
    columns = [label, call.cast(best, dtype_of(offsets))]
    if keep:
        columns[0] = call.emit(relax.op.where, above, label, scalar(0, label))
    columns = [reshape(call.bb, column, (batch, count, 1)) for column in columns]
    rows = call.emit(relax.op.concat, [*columns, boxes], -1)
    if keep:
        return [rows, const(np.full(batch, count, "int32"))]
    return _valid_first(call, rows, above)


def _decoded(call: OpCall, offsets: relax.Expr, anchors: relax.Expr) -> relax.Expr:
    """Corners (N, A, 4) of anchors that are moved by parts of their size, and scaled."""
    variances = np.asarray(call.attr("variances", [0.1, 0.1, 0.2, 0.2]), dtype_of(offsets))
    moved = call.emit(relax.op.multiply, offsets, const(variances))
    shift, growth = _halves(call, moved)
    low, high = _halves(call, anchors)
    half = scalar(0.5, offsets)
    size = call.emit(relax.op.subtract, high, low)
    middle = call.emit(relax.op.multiply, call.emit(relax.op.add, low, high), half)
    centre = call.emit(relax.op.add, call.emit(relax.op.multiply, shift, size), middle)
    reach = call.emit(relax.op.multiply, call.emit(relax.op.exp, growth), size)
    reach = call.emit(relax.op.multiply, reach, half)
    corners = [call.emit(op, centre, reach) for op in (relax.op.subtract, relax.op.add)]
    boxes = call.emit(relax.op.concat, corners, -1)
    return call.emit(relax.op.clip, boxes, 0.0, 1.0) if call.attr("clip", True) else boxes


def _halves(call: OpCall, rows: relax.Expr) -> list[relax.Expr]:
    """The first and the last two of four columns."""
    return [call.emit(relax.op.strided_slice, rows, [2], [i], [i + 2]) for i in (0, 2)]


def _valid_first(call: OpCall, rows: relax.Expr, valid: relax.Expr) -> list[relax.Expr]:
    batch, count, _ = shape_of(rows)
    positions = const(np.arange(count), "int32")
    # Each row's own number, so that sorting keeps the order; the invalid ones come later.
    later = call.emit(relax.op.add, positions, const(np.asarray(count), "int32"))
    keys = call.emit(relax.op.where, valid, positions, later)
    order = call.emit(relax.op.argsort, keys, 1, False, "int64")
    order = reshape(call.bb, order, (batch, count, 1))
    moved = call.emit(relax.op.gather_nd, rows, order, 1)
    number = call.emit(relax.op.sum, call.emit(relax.op.astype, valid, "int32"), [1])
    inside = call.emit(relax.op.less, positions, reshape(call.bb, number, (batch, 1)))
    inside = reshape(call.bb, inside, (batch, count, 1))
    return [relax.op.where(inside, moved, scalar(-1, moved)), number]
