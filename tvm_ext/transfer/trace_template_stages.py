"""The stages of a tensor program: what comes before its anchor, the anchor, what comes after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

# Spatial loops of what isn't in blocks of channels: (n, c, h, w).
PLAIN = 4


@dataclass(frozen=True)
class LoopMap:
    """How the loops of one anchor stand for those of another.

    Spatial loops stand for each other by position, whatever they run over: the last one is
    contiguous in memory and becomes vectors. Those of a reduction stand for what they run over.

    Attributes
    ----------
    block : int
        The channels of a block where only the first computes in such, (n, c / b, h, w, b): its
        last two loops stand for parts of the other's last one. Else 0.
    rotated : bool
        Whether the first is a convolution with channels last, (n, h, w, c), whose reduction runs
        over rows, columns, and channels last, too, where the other's has them first.
    """

    block: int = 0
    rotated: bool = False

    def extents(self, extents: Sequence[int]) -> tuple[int, ...]:
        """The extents of the first in the order of the second."""
        if self.block:
            n, chunks, height, width, block, *rest = extents
            return (n, chunks * block, height, width, *rest)
        if self.rotated:
            n, height, width, channels, rows, columns, reduced = extents
            return (n, channels, height, width, reduced, rows, columns)
        return tuple(extents)


@dataclass(frozen=True)
class Stages:
    """The blocks of an unscheduled function, by name, in order.

    Attributes
    ----------
    prologue : tuple of str
        Blocks before the anchor: padding, transformed inputs.
    anchor : str
        The reduction with the most iterations; without reductions the last block.
    epilogue : tuple of str
        Blocks after it.
    loops : str
        The anchor's iterators: S for a spatial one, R for a reduction.
    extents : tuple of int
        Their extents.
    """

    prologue: tuple[str, ...]
    anchor: str
    epilogue: tuple[str, ...]
    loops: str
    extents: tuple[int, ...]

    @classmethod
    def of(cls, function: tirx.PrimFunc) -> Stages:
        """Read a function as `ProgramWorkload` has it."""
        schedule = Schedule(tvm.IRModule({"main": function}))
        blocks = [schedule.get(b) for b in schedule.get_child_blocks(schedule.get_sblock("root"))]
        names = [str(b.name_hint) for b in blocks]
        reductions = [i for i, b in enumerate(blocks) if "R" in _loops(b)]
        index = max(reductions, key=lambda i: prod(_extents(blocks[i])), default=len(blocks) - 1)
        anchor = blocks[index]
        return cls(
            tuple(names[:index]), names[index], tuple(names[index + 1 :]),
            _loops(anchor), _extents(anchor),
        )  # fmt: skip

    def loop_map(self, other: Stages) -> LoopMap | None:
        """How a schedule for this anchor's loops can be one for another's; None if it can't."""
        if self.loops == other.loops:
            channels_last = self._channels_last and not other._channels_last
            return LoopMap(rotated=channels_last and self.loops == "SSSSRRR")
        if self.loops == "S" + other.loops and other.loops.count("S") == PLAIN:
            return LoopMap(block=self.extents[PLAIN])
        return None

    @property
    def _channels_last(self) -> bool:
        return self.anchor.lower().endswith("nhwc")


def is_reduction(variable: tirx.IterVar) -> bool:
    """Whether a block's iterator is reduced over."""
    return bool(int(variable.iter_type) == tirx.IterVar.CommReduce)


def _loops(block: Any) -> str:
    return "".join("R" if is_reduction(iv) else "S" for iv in block.iter_vars)


def _extents(block: Any) -> tuple[int, ...]:
    return tuple(int(iv.dom.extent) for iv in block.iter_vars)
