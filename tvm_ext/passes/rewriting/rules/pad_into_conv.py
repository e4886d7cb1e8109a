"""Zeros around the input of a convolution."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.pattern import Match, Op, Value
from tvm_ext.passes.rewriting.rule import Rule, register_rule


@register_rule
class PadIntoConv(Rule):
    """The convolution pads while it reads."""

    name = "pad_into_conv"
    formula = "conv(pad(x, zeros), w) -> conv(x, w, padding)"
    pattern = Op("nn.conv1d|nn.conv2d|nn.conv3d", Op("nn.pad", Value("x"), name="pad"), name="conv")

    def refuses(self, match: Match) -> str:
        pad, conv = match["pad"], match["conv"]
        if pad.attrs.pad_mode != "constant" or float(pad.attrs.pad_value) != 0:
            return "the padding isn't of zeros"
        widths = [int(w) for w in pad.attrs.pad_width]
        if any(widths[:4]):
            return "images or channels are padded"
        if any(w < 0 for w in widths):
            return "the padding is negative: it cuts"
        if not str(conv.attrs.data_layout).startswith("NC"):
            return f"layout {conv.attrs.data_layout}"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        widths = [int(w) for w in match["pad"].attrs.pad_width][4:]
        own = [int(p) for p in root.attrs.padding]
        extra = widths[0::2] + widths[1::2]
        a = root.attrs
        operator = getattr(relax.op.nn, df.op_name(root).rsplit(".", 1)[-1])
        return operator(
            match["x"], root.args[1], strides=a.strides,
            padding=[p + e for p, e in zip(own, extra, strict=True)], dilation=a.dilation,
            groups=a.groups, data_layout=a.data_layout, kernel_layout=a.kernel_layout,
            out_layout=a.out_layout, out_dtype=a.out_dtype,
        )  # fmt: skip
