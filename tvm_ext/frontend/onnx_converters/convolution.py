"""Conv and ConvTranspose.

Both become ``relax.nn.conv{1,2,3}d[_transpose]`` with all padding in the operator's attributes,
then ``relax.add`` of a bias of shape (1, C, 1, ...).
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import (
    along_channels,
    const,
    constant,
    optional,
    shape_of,
)
from tvm_ext.frontend.onnx_converters.windows import split_pads, window_pads
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


@register_onnx_converter("Conv")
def convert_conv(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Conv of one, two or three spatial dimensions."""
    data, weight, bias = inputs[0], inputs[1], optional(inputs, 2)
    return with_bias(bb, convolve(data, weight, attrs), bias)


def convolve(data: relax.Expr, weight: relax.Expr, attrs: Attributes) -> relax.Expr:
    """Return the convolution that ONNX's attributes describe, without bias.

    Parameters
    ----------
    data : relax.Expr
        (N, C, spatial...).
    weight : relax.Expr
        (O, C / group, kernel...).
    """
    kernel = shape_of(weight)[2:]
    letters = _letters(len(kernel))
    strides, dilations = _strides(attrs, len(kernel))
    return getattr(relax.op.nn, f"conv{len(kernel)}d")(
        data,
        weight,
        strides=strides,
        padding=window_pads(attrs, shape_of(data)[2:], kernel, strides, dilations),
        dilation=dilations,
        groups=attrs.get("group", 1),
        data_layout=f"NC{letters}",
        kernel_layout=f"OI{letters}",
    )


@register_onnx_converter("ConvTranspose")
def convert_conv_transpose(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert ConvTranspose, with its three ways to say how large the output is."""
    data, weight, bias = inputs[0], inputs[1], optional(inputs, 2)
    sizes = shape_of(data)[2:]
    rank = len(sizes)
    letters = _letters(rank)
    strides, dilations = _strides(attrs, rank)
    extra = list(attrs.get("output_padding", [0] * rank))
    weight = _dilated(weight, dilations)
    kernel = shape_of(weight)[2:]
    full = [s * (n - 1) + k for n, s, k in zip(sizes, strides, kernel, strict=True)]

    mode = attrs.get("auto_pad", "NOTSET")
    target = attrs.get("output_shape")
    if target is not None:
        target = target[-rank:]
    elif mode.startswith("SAME"):
        target = [n * s for n, s in zip(sizes, strides, strict=True)]
    if target is None:
        pads = window_pads(attrs, sizes, kernel, strides, [1] * rank)
    else:
        totals = [f + e - t for f, e, t in zip(full, extra, target, strict=True)]
        # An output larger than all products reach has zeros at its end.
        extra = [e + max(-t, 0) for e, t in zip(extra, totals, strict=True)]
        # The standard puts the odd one at the begin unless SAME_UPPER is set.
        pads = split_pads(
            "SAME_UPPER" if mode == "SAME_UPPER" else "SAME_LOWER", [max(t, 0) for t in totals]
        )
    inside = [min(e, s - 1) for e, s in zip(extra, strides, strict=True)]
    out = bb.emit(
        getattr(relax.op.nn, f"conv{rank}d_transpose")(
            data,
            weight,
            strides=strides,
            padding=pads,
            output_padding=inside,
            dilation=[1] * rank,
            groups=attrs.get("group", 1),
            data_layout=f"NC{letters}",
            kernel_layout=f"IO{letters}",
        )
    )
    # relax.nn's output_padding stays below the stride; zeros beyond that are padded on.
    beyond = [e - i for e, i in zip(extra, inside, strict=True)]
    if any(beyond):
        widths = [0, 0, 0, 0] + [w for b in beyond for w in (0, b)]
        out = bb.emit(relax.op.nn.pad(out, widths))
    return with_bias(bb, out, bias)


def with_bias(bb: relax.BlockBuilder, out: relax.Expr, bias: relax.Expr | None) -> relax.Expr:
    """Add a bias of shape (C,) to a feature map."""
    if bias is None:
        return out
    out = bb.emit(out)
    return relax.op.add(out, along_channels(bias, len(shape_of(out))))


def _dilated(weight: relax.Expr, dilations: list[int]) -> relax.Expr:
    """Spell dilation out as zeros in the kernel: TVM can't compile it in transposed form."""
    if all(d == 1 for d in dilations):
        return weight
    value = constant(weight)
    if value is None:
        raise ModelError("a dilated ConvTranspose needs constant weights")
    kernel = [(k - 1) * d + 1 for k, d in zip(value.shape[2:], dilations, strict=True)]
    dilated = np.zeros((*value.shape[:2], *kernel), value.dtype)
    every = (slice(None), slice(None), *(slice(None, None, d) for d in dilations))
    dilated[every] = value
    return const(dilated)


def _strides(attrs: Attributes, rank: int) -> tuple[list[int], list[int]]:
    ones = [1] * rank
    return list(attrs.get("strides", ones)), list(attrs.get("dilations", ones))


def _letters(rank: int) -> str:
    if rank not in _SPATIAL:
        raise ModelError(f"a convolution over {rank} spatial dimensions; 1, 2 and 3 are supported")
    return _SPATIAL[rank]
