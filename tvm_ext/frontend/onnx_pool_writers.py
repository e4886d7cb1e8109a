"""What pools are in ONNX; importing this file registers it."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import shape_of
from tvm_ext.frontend.onnx_writer import GraphWriter, writes
from tvm_ext.frontend.onnx_writers import ints_of
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.channel_window import channel_window


@writes(*(f"nn.{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)))
def write_pool(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...] | None:
    """Write a pool with channels first, or one over channels."""
    if (window := channel_window(call)) is not None:
        return _write_channel_pool(graph, call, *window)
    attrs = call.attrs
    dilations = ints_of(attrs.dilation)
    average = ".avg_" in df.op_name(call)
    if not str(attrs.layout).startswith("NC") or attrs.ceil_mode:
        return None
    # AveragePool has dilations from opset 19 on only.
    if average and any(d != 1 for d in dilations):
        return None
    kind: dict[str, Any] = {"dilations": dilations}
    if average:
        kind = {"count_include_pad": int(attrs.count_include_pad)}
    return graph.node(
        "AveragePool" if average else "MaxPool",
        graph.values(call.args[0]),
        kernel_shape=ints_of(attrs.pool_size),
        strides=ints_of(attrs.strides),
        pads=ints_of(attrs.padding),
        **kind,
    )


def _write_channel_pool(
    graph: GraphWriter, call: relax.Call, size: int, before: int
) -> tuple[str, ...]:
    """ONNX pools no channels, so that they are the rows of an image here."""
    shape = shape_of(call.args[0])
    rows = (shape[0], 1, shape[1], int(np.prod(shape[2:])))
    image = graph.node("Reshape", [*graph.values(call.args[0]), graph.ints(rows)])
    pooled = graph.node(
        "AveragePool",
        image,
        kernel_shape=[size, 1],
        pads=[before, 0, size - 1 - before, 0],
        count_include_pad=1,
    )
    return graph.node("Reshape", [*pooled, graph.ints(shape)])
