"""The stages of a tensor program: what comes before its anchor, the anchor, what comes after."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule


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


def _loops(block: Any) -> str:
    return "".join("R" if int(iv.iter_type) == 2 else "S" for iv in block.iter_vars)


def _extents(block: Any) -> tuple[int, ...]:
    return tuple(int(iv.dom.extent) for iv in block.iter_vars)
