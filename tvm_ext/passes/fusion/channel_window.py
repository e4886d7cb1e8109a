"""Average pools that slide over the second dimension, in which feature maps have their channels."""

from __future__ import annotations

from typing import Any

from tvm_ext.passes import dataflow as df

# Layouts in which a pool's first axis is the second dimension.
_LAYOUTS = {
    "relax.nn.avg_pool1d": "NWC",
    "relax.nn.avg_pool2d": "NHWC",
    "relax.nn.avg_pool3d": "NDHWC",
}


def channel_window(call: Any) -> tuple[int, int] | None:
    """The window of a pool that averages neighbouring channels of N C spatial, for each of them.

    Such a pool calls the tensor's dimensions N H W C, and has a window of a single column.

    Parameters
    ----------
    call : expression

    Returns
    -------
    tuple of int, or None
        How many channels, and how many of them before the own one. None for any other call, and
        where channels past the ends don't count.
    """
    layout, attrs = _LAYOUTS.get(df.op_name(call)), getattr(call, "attrs", None)
    if layout is None or {str(attrs.layout), str(attrs.out_layout)} != {layout}:
        return None
    size, *others = (int(n) for n in attrs.pool_size)
    if any(int(n) != 1 for n in (*others, *attrs.strides, *attrs.dilation)):
        return None
    padding = [int(n) for n in attrs.padding]
    before, after = padding[0], padding[len(others) + 1]
    if before + after != size - 1 or sum(padding) != size - 1:
        return None
    return (size, before) if attrs.count_include_pad or size == 1 else None
