"""The innermost loops of spatial pack: over what a register tile is multiplied with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.conv_geometry import ConvGeometry, channel_step
from tvm_ext.schedules.conv_stage import Source
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.target import CpuTarget


def group_blocks(w: ConvWorkload, target: CpuTarget) -> int:
    """Vectors of output channels in one group."""
    return -(-(w.out_channels // w.groups) // target.lanes)


def reduction_step(w: ConvWorkload, target: CpuTarget) -> int:
    """Input channels that the inner loop unrolls."""
    return channel_step(w.in_channels // w.groups, target.lanes)


def pack_panels(w: ConvWorkload, width: int, target: CpuTarget, weight: np.ndarray) -> np.ndarray:
    """Weights to panels of `width` vectors, in the order in which the innermost loops read them."""
    v, kernel = target.lanes, ConvGeometry.of(w).kernel
    blocks, per_group = group_blocks(w, target), w.in_channels // w.groups
    step = reduction_step(w, target)
    data = weight.reshape(w.groups, w.out_channels // w.groups, per_group, *kernel)
    missing = blocks * v - data.shape[1]
    if missing:
        data = np.pad(data, [(0, 0), (0, missing)] + [(0, 0)] * (data.ndim - 2))
    data = data.reshape(w.groups, blocks, v, per_group // step, step, *kernel)
    panels = cuts.cut_panels(data, 1, width, at=1)
    # (group, panel, block, lane, outer, step, *taps) to (.., outer, *taps, step, block, lane)
    taps = range(6, panels.ndim)
    panels = panels.transpose(0, 1, 4, *taps, 5, 2, 3)
    return np.ascontiguousarray(panels.reshape(-1, *panels.shape[2:]))


@dataclass(frozen=True)
class Place:
    """Where a tile is, and which turn it is of those that its panel of weights takes.

    Its first position is `row` rows after the task's `origin`, in `column`; see `conv_stage`.
    """

    source: Source
    n: Any
    group: Any
    panel: Any
    row: Any
    column: Any
    origin: Sequence[Any]
    turn: Any
    turns: int


class Weights(Protocol):
    """What a tile is multiplied with.

    Attributes
    ----------
    pieces : int
        Parts of a group's panels that threads share.
    room : int
        Rows for which the input is addressed by one number; 0: by a number for each dimension.
    """

    @property
    def pieces(self) -> int: ...

    @property
    def room(self) -> int: ...

    def declare(self) -> None:
        """Declare the arguments, between the input and the prologue's constants."""

    def view(self) -> None:
        """Declare views of the arguments, after the last of the kernel's."""

    def panels(self, group: Any, piece: Any) -> contextlib.AbstractContextManager[Any]:
        """A loop over the panels of a piece of a group."""

    def multiply(
        self, acc: emit.RegisterTile, at: Place, block: int, ask: Callable[[Any, int], None]
    ) -> None:
        """Add the products of a tile, and call `ask(part, parts)` for each part of the loop."""


class DenseWeights:
    """Panels of all weights: outer channels, taps, `reduction_step` inner channels, vectors."""

    room = 0

    def __init__(self, w: ConvWorkload, params: Params, target: CpuTarget) -> None:
        self._w, self._geometry = w, ConvGeometry.of(w)
        self._width, self._lanes = params["blocks"], target.lanes
        self._step = reduction_step(w, target)
        self._panels = -(-group_blocks(w, target) // self._width)
        self._piece_panels = -(-self._panels // params["pieces"])

    @property
    def pieces(self) -> int:
        return -(-self._panels // self._piece_panels)

    @property
    def _per_group(self) -> int:
        return self._w.in_channels // self._w.groups

    @property
    def _panel_floats(self) -> int:
        return self._per_group * prod(self._geometry.kernel) * self._width * self._lanes

    def declare(self, name: str = "weight") -> None:
        count, step = self._w.groups * self._panels, self._step
        shape = (count, self._per_group // step, *self._geometry.kernel, step)
        self._weight = emit.argument(name, (*shape, self._width, self._lanes))

    def view(self) -> None:
        floats = self._w.groups * self._panels * self._panel_floats
        self._flat = emit.view(self._weight, (floats,))

    @contextlib.contextmanager
    def panels(self, group: Any, piece: Any) -> Iterator[Any]:
        with emit.loop(self._piece_panels) as p:
            panel = piece * self._piece_panels + p
            if self._panels % self._piece_panels:
                with T.If(panel < self._panels), T.Then():
                    yield panel
            else:
                yield panel

    def multiply(
        self, acc: emit.RegisterTile, at: Place, block: int, ask: Callable[[Any, int], None]
    ) -> None:
        g, step, parts = self._geometry, self._step, self._per_group // self._step
        panel = at.group * self._panels + at.panel
        with contextlib.ExitStack() as loops:
            co = loops.enter_context(emit.loop(parts))
            # The tiles of a panel take turns in asking for the next panel's weights.
            following, now = (panel + 1) * self._panel_floats, at.turn * parts + co
            emit.prefetch_ahead(self._flat, following, self._panel_floats, now, at.turns * parts)
            ask(co, parts)
            taps = loops.enter_context(emit.nest(g.kernel))
            ci = loops.enter_context(emit.loop(step, "unroll"))
            acc.multiply_add(
                lambda x: at.source.load(
                    g, at.n, at.group, self._per_group, co * step, ci, at.row, at.column + x, taps,
                    block, at.origin,
                ),
                lambda c, lane: self._weight[(panel, co, *taps, ci, c, lane)],
            )  # fmt: skip
