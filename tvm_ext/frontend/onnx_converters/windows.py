"""The padding of sliding windows (convolutions, pools) as explicit numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm_ext.errors import ModelError


def window_pads(
    attrs: dict[str, Any],
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    """Return pads as ONNX orders them: all begins, then all ends.

    Parameters
    ----------
    attrs : dict
        The node's attributes: ``auto_pad`` and ``pads`` are read.
    sizes : Sequence[int]
        Spatial extents of the input; `kernel`, `strides` and `dilations` have as many entries.
    """
    mode = attrs.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return list(attrs.get("pads", [0] * (2 * len(sizes))))
    if mode == "VALID":
        return [0] * (2 * len(sizes))
    totals = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True)
    ]
    return split_pads(mode, totals)


def split_pads(mode: str, totals: Sequence[int]) -> list[int]:
    """Share each dimension's total padding between begin and end; the odd one goes by `mode`."""
    small = [t // 2 for t in totals]
    large = [t - t // 2 for t in totals]
    if mode == "SAME_UPPER":
        return small + large
    if mode == "SAME_LOWER":
        return large + small
    raise ModelError(f"auto_pad is {mode!r}; it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER")
