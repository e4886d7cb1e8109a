"""Elementwise steps on the input of a convolution, applied while a task copies what it reads.

For inputs that others read as they are: the processed input is never in memory, only in the copies
of tasks. Padding stays zero, as the convolution of the processed tensor would have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import tirx

from tvm_ext.schedules import emit
from tvm_ext.schedules.base import YES, Support, refuse
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.target import CpuTarget


def refuse_prologue(w: ConvWorkload) -> Support:
    """Of an algorithm that reads its input as it is."""
    return refuse("a prologue") if w.prologue else YES


def supports_prologue(w: ConvWorkload) -> Support:
    """Of an algorithm that copies its input: constants for each input channel, and numbers."""
    if w.prologue is None:
        return YES
    if w.prologue.results != 1:
        return refuse(f"prologue.results is {w.prologue.results}; only 1, the input")
    allowed = (1, w.in_channels, *(1,) * len(w.spatial))
    for i, operand in enumerate(w.prologue.operands):
        if operand.shape != allowed or operand.dtype != "float32" or operand.view is not None:
            return refuse(
                f"operand {i} of the prologue: {operand.dtype} of shape {operand.shape}; "
                f"only float32 of shape {allowed}, stored so"
            )
    return YES


def pack_constants(
    w: ConvWorkload, target: CpuTarget, constants: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Each constant flat, with zeros for the missing lanes of its last vector."""
    spare = -w.in_channels % target.lanes
    return [np.pad(x.reshape(w.in_channels).astype("float32"), (0, spare)) for x in constants]


def prologue_seconds(w: ConvWorkload, nbytes: float, target: CpuTarget) -> float:
    """Seconds in which one core applies the prologue to so many bytes of input in its cache."""
    flops = w.prologue.flops if w.prologue else 0
    # Half the FMA rate is one operation an instruction; chains reach about half of that.
    return nbytes / 4 * flops / (0.25 * target.fma_peak)


def declare_constants(w: ConvWorkload, target: CpuTarget) -> list[Any]:
    """Declare one argument for each constant, as `pack_constants` makes it."""
    if w.prologue is None:
        return []
    size = -(-w.in_channels // target.lanes) * target.lanes
    return [emit.argument(f"c{i}", (size,)) for i, _ in enumerate(w.prologue.operands)]


def processed(w: ConvWorkload, constants: Sequence[Any], channel: Any, x: tirx.Expr) -> tirx.Expr:
    """An element of input channel `channel` after the prologue, if there is one."""
    if w.prologue is None:
        return x
    return w.prologue.evaluate([x], lambda j: constants[j][channel])
