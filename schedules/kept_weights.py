"""The innermost loop of sparse spatial pack: over the columns that a panel of filters keeps.

A column is an (input channel, tap) pair. The input is addressed by one number, so that a column is
one offset: a step of the loop reads it, one vector of weights for each block of the panel, and the
input's element at every position of the tile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from tvm import tirx

from tvm_ext.schedules import emit
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_stage import staged_extents
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pointer_run import pointer_run
from tvm_ext.schedules.pool_stage import rows_needed
from tvm_ext.schedules.spatial_pack_weights import Place, group_blocks
from tvm_ext.target import CpuTarget

# Columns, each about a line of weights and a cycle for each position, that memory takes at most.
_AHEAD = 32


class KeptWeights:
    """Panels of the columns in which a filter isn't zero: values, offsets, pointers, shares."""

    def __init__(self, w: ConvWorkload, params: Params, target: CpuTarget) -> None:
        self._w, self._geometry, self._lanes = w, ConvGeometry.of(w), target.lanes
        self._staged, self._width, self.pieces = params["stage"], params["blocks"], params["pieces"]
        self._count = group_blocks(w, target) // self._width
        # As many rows as a task stages; in place the extents don't depend on it.
        self.room = max(1, rows_needed(w, params["chunk"]))

    @property
    def _extents(self) -> tuple[int, ...]:
        """Spatial extents of what is addressed."""
        if not self._staged:
            return self._geometry.spatial
        return staged_extents(self._geometry, self.room)

    def offsets(self) -> np.ndarray:
        """What each column adds to the address of a position.

        Returns
        -------
        ndarray of int32
            (groups, input channels of a group, taps).
        """
        w, g, v = self._w, self._geometry, self._lanes
        per_group = w.in_channels // w.groups
        channels = np.arange(per_group)[None].repeat(w.groups, axis=0)
        if not self._staged:
            channels += per_group * np.arange(w.groups)[:, None]
        planes = channels // v * prod(self._extents) * v + channels % v
        taps = []
        for tap in np.ndindex(*g.kernel):
            reach = [t * d for t, d in zip(tap, g.dilation, strict=True)]
            taps.append(0 if g.flat else v * emit.flat_index(reach, self._extents))
        return (planes[..., None] + np.array(taps)).astype("int32")

    def declare(self) -> None:
        kept, panels = tirx.Var("kept", "int32"), self._w.groups * self._count
        self._values = emit.argument("values", (kept, self._width, self._lanes))
        self._columns = emit.argument("columns", (kept,), "int32")
        self._pointers = emit.argument("pointers", (panels + 1,), "int32")
        self._shares = emit.argument("shares", (self._w.groups * (self.pieces + 1),), "int32")

    def view(self) -> None:
        """No argument needs one."""

    @contextlib.contextmanager
    def panels(self, group: Any, piece: Any) -> Iterator[Any]:
        if self.pieces == 1:
            with emit.loop(self._count) as panel:
                yield panel
        else:
            with pointer_run(self._shares, group * (self.pieces + 1) + piece) as panel:
                yield tirx.Cast("int32", panel)

    def multiply(
        self, acc: emit.RegisterTile, at: Place, block: int, ask: Callable[[Any, int], None]
    ) -> None:
        ask(0, 1)
        first, step = self._address(at)
        with pointer_run(self._pointers, at.group * self._count + at.panel) as j:
            emit.prefetch(self._values, [j + _AHEAD, 0, 0], 1)
            acc.multiply_add(
                lambda x: at.source.buffer[self._columns[j] + first + x * step],
                lambda c, lane: self._values[j, c, lane],
            )

    def _address(self, at: Place) -> tuple[Any, int]:
        """The tile's first position, and how far its next one is."""
        g, v = self._geometry, self._lanes
        if g.flat:
            # A flat task's own positions start at its origin in the tensor, at 0 in its copy.
            position, step = at.column + (0 if self._staged else at.origin[0]), 1
        else:
            start = [0] * len(at.origin) if self._staged else list(at.origin)
            where = (*start[:-1], start[-1] + at.row, at.column)
            scaled = [p * s for p, s in zip(where, g.stride, strict=True)]
            position, step = emit.flat_index(scaled, self._extents), g.stride[-1]
        image = 0
        if not self._staged:
            blocks = -(-self._w.in_channels // v)
            image = at.n * (blocks * prod(self._extents))
        return (image + position) * v, step * v
