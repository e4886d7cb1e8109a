"""Strides and paddings of sliding windows in Relay's forms, as explicit numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm_ext.errors import ModelError
from tvm_ext.frontend.relay.registry import OpCall

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def per_axis(call: OpCall, name: str, rank: int, default: int = 1) -> list[int]:
    """One number for each of `rank` dimensions; Relay lets a single one stand for all."""
    values = _list(call.attr(name, default))
    if len(values) not in (1, rank):
        raise ModelError(f"{name} is {values}; it must be 1 or {rank} numbers")
    return values * rank if len(values) == 1 else values


def pads(call: OpCall, rank: int) -> list[int]:
    """Padding as begins, then ends; Relay writes one number, one a dimension, or both sides."""
    values = _list(call.attr("padding", 0))
    if len(values) == 1:
        return values * (2 * rank)
    if len(values) == rank:
        return values * 2
    if len(values) == 2 * rank:
        return values
    raise ModelError(f"padding is {values}; it must be 1, {rank} or {2 * rank} numbers")


def ceil_pads(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[int],
) -> list[int]:
    """Padding with as much at the end as the last window of ``ceil_mode`` reaches.

    Relay keeps a last window that starts in the padding, other than ONNX.
    """
    rank = len(sizes)
    ends = list(padding)
    for i in range(rank):
        extent = (kernel[i] - 1) * dilations[i] + 1
        steps = -(-(sizes[i] + padding[i] + padding[rank + i] - extent) // strides[i])
        reach = steps * strides[i] + extent - sizes[i] - padding[i]
        ends[rank + i] = max(reach, padding[rank + i])
    return ends


def _list(value: Any) -> list[int]:
    return [int(n) for n in (value if isinstance(value, list | tuple) else [value])]
