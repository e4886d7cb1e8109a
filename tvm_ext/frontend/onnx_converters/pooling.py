"""Pools: MaxPool, AveragePool, LpPool and the global ones, as ``relax.nn.{max,avg}_pool{1,2,3}d``.

``ceil_mode`` and ``auto_pad`` become explicit end padding, so that later passes meet one form only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import dtype_of, scalar, shape_of
from tvm_ext.frontend.onnx_converters.windows import window_pads
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


@register_onnx_converter("MaxPool")
def convert_max_pool(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert MaxPool without its second output."""
    if len(node.outputs) > 1 and node.outputs[1]:
        raise ModelError("the output 'Indices' isn't supported")
    _, end_pads, window = _window(attrs, shape_of(inputs[0])[2:])
    return _pool("max", inputs[0], pads=end_pads, **window)


@register_onnx_converter("AveragePool")
def convert_average_pool(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert AveragePool; a divisor may count padding, never what ceil_mode adds behind it."""
    data = inputs[0]
    pads, end_pads, window = _window(attrs, shape_of(data)[2:])
    count_pads = bool(attrs.get("count_include_pad", 0))
    if count_pads and pads != end_pads:
        # Real zeros where padding counts, and padding that doesn't for the rest.
        rank = len(pads) // 2
        widths = [0, 0, 0, 0] + [w for i in range(rank) for w in (pads[i], pads[rank + i])]
        data = bb.emit(relax.op.nn.pad(data, widths))
        rest = [end - pad for end, pad in zip(end_pads, pads, strict=True)]
        return _pool("avg", data, pads=rest, **window)
    return _pool("avg", data, pads=end_pads, count_include_pad=count_pads, **window)


@register_onnx_converter("LpPool")
def convert_lp_pool(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert LpPool, the p-norm of each window: (mean of ``|x|**p`` times window size)**(1/p)."""
    _, end_pads, window = _window(attrs, shape_of(inputs[0])[2:])
    p = attrs.get("p", 2)
    mean = bb.emit(
        _pool("avg", _power(bb, inputs[0], p), pads=end_pads, count_include_pad=True, **window)
    )
    return _root(bb, bb.emit(relax.op.multiply(mean, scalar(prod(window["kernel"]), mean))), p)


@register_onnx_converter("GlobalAveragePool")
def convert_global_average_pool(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert GlobalAveragePool: one window over all the image."""
    return _global_pool("avg", inputs[0])


@register_onnx_converter("GlobalMaxPool")
def convert_global_max_pool(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert GlobalMaxPool: one window over all the image."""
    return _global_pool("max", inputs[0])


@register_onnx_converter("GlobalLpPool")
def convert_global_lp_pool(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert GlobalLpPool: the p-norm over all the image."""
    p = attrs.get("p", 2)
    axes = list(range(2, len(shape_of(inputs[0]))))
    total = bb.emit(relax.op.sum(_power(bb, inputs[0], p), axes, keepdims=True))
    return _root(bb, total, p)


def _window(
    attrs: Attributes, sizes: Sequence[int]
) -> tuple[list[int], list[int], dict[str, list[int]]]:
    """Return the pads that count, the pads that reach the last window, and the window itself."""
    rank = len(sizes)
    kernel = list(attrs["kernel_shape"])
    strides = list(attrs.get("strides", [1] * rank))
    dilations = list(attrs.get("dilations", [1] * rank))
    pads = window_pads(attrs, sizes, kernel, strides, dilations)
    ends = list(pads)
    if attrs.get("ceil_mode", 0):
        for i in range(rank):
            extent = (kernel[i] - 1) * dilations[i] + 1
            steps = -(-(sizes[i] + pads[i] + pads[rank + i] - extent) // strides[i])
            # A window that would start behind the image and its begin padding is dropped.
            if steps * strides[i] >= sizes[i] + pads[i]:
                steps -= 1
            reach = steps * strides[i] + extent - sizes[i] - pads[i]
            ends[rank + i] = max(reach, pads[rank + i])
    return pads, ends, {"kernel": kernel, "strides": strides, "dilations": dilations}


def _pool(
    kind: str,
    data: relax.Expr,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    count_include_pad: bool = False,
) -> relax.Expr:
    rank = len(kernel)
    if rank not in _LAYOUTS:
        raise ModelError(f"a pool over {rank} spatial dimensions; 1, 2 and 3 are supported")
    return getattr(relax.op.nn, f"{kind}_pool{rank}d")(
        data,
        list(kernel),
        list(strides),
        list(pads),
        list(dilations),
        False,
        count_include_pad,
        _LAYOUTS[rank],
    )


def _global_pool(kind: str, data: relax.Expr) -> relax.Expr:
    sizes = shape_of(data)[2:]
    if len(sizes) not in _LAYOUTS:
        reduce = relax.op.mean if kind == "avg" else relax.op.max
        return reduce(data, list(range(2, 2 + len(sizes))), keepdims=True)
    ones = [1] * len(sizes)
    return _pool(
        kind, data, kernel=sizes, strides=ones, dilations=ones, pads=[0] * (2 * len(sizes))
    )


def _power(bb: relax.BlockBuilder, data: relax.Expr, p: int) -> relax.Expr:
    if p == 2:
        return bb.emit(relax.op.multiply(data, data))
    positive = bb.emit(relax.op.abs(data))
    return positive if p == 1 else bb.emit(relax.op.power(positive, scalar(p, data)))


def _root(bb: relax.BlockBuilder, data: relax.Expr, p: int) -> relax.Expr:
    if p == 1:
        return data
    if p == 2:
        return relax.op.sqrt(data)
    return relax.op.power(data, relax.const(np.asarray(1 / p, dtype_of(data))))
