"""Convolution that skips zeros: what the algorithms share that keep columns of weights.

A panel of output channels keeps the (input channel, tap) columns in which one of them isn't zero
(`ColumnPanels`): what is zero in all of them costs nothing, and a vector of the input that is read
for a column serves every channel of the panel. `sparse_conv_kernel` has the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse
from tvm_ext.schedules.conv_prologue import refuse_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_stage import refuse_pool
from tvm_ext.schedules.sparse_conv_kernel import emit_sparse_conv, geometry, tasks
from tvm_ext.schedules.sparse_geometry import SparseGeometry
from tvm_ext.schedules.sparse_support import supports_zeros
from tvm_ext.schedules.sparse_tile import SparseTile, legal_tiles, pass_cycles
from tvm_ext.sparsity import ColumnPanels, equal_shares
from tvm_ext.sparsity.run_pointers import run_pointers
from tvm_ext.target import CpuTarget

_MOST_TASKS = 64
_TASK_SECONDS = 2e-7
# Cycles in which a vector is copied, or finished and stored.
_COPY_CYCLES = 1.5
_FINISH_CYCLES = 4.0
# Cycles that a vector takes longer from the second cache, in which one goes there and back, and of
# a loop over columns beside them.
_L2_CYCLES = 0.8
_WAIT_CYCLES = 3.0
_RUN_CYCLES = 15.0


class SparseConv(Algorithm[ConvWorkload]):
    """Planar input and output; of the weights, the columns of each panel that aren't zero.

    A subclass names the numbers of channels that its `panels` may have.

    Parameters of the plan: `channels` of a panel and `vectors` of positions in registers; `chunk`
    rows (or positions, when the kernel is 1x1) that a task computes; `depth` input channels that it
    takes at a time, so that they fit the first cache; `shifted`, whether it copies them for each
    column of the kernel, so that vectors are aligned; `pieces` parts of the panels, equal in what
    they keep, that threads share.
    """

    workload_type: ClassVar[type] = ConvWorkload
    panels: ClassVar[tuple[int, ...]]

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        if not (support := supports_zeros(workload)):
            return support
        if not self._panels(workload):
            per_group = workload.out_channels // workload.groups
            return refuse(
                f"{per_group} output channels a group don't fill panels of {self.panels[0]}"
            )
        return refuse_prologue(workload) and refuse_pool(workload)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        w = workload
        extent = SparseGeometry.of(w, 1).extent
        whole = [SparseGeometry.of(w, extent, shifted=s) for s in _shifts(w)]
        most = max(g.positions for g in whole)
        tiles = legal_tiles(self._panels(w), most, w.out_channels, target)
        return {
            "channels": tuple(sorted({t.channels for t in tiles})),
            "vectors": tuple(sorted({t.vectors for t in tiles})),
            "chunk": tuple(range(1, extent + 1)),
            "depth": cuts.divisors(w.in_channels),
            "shifted": _shifts(w),
            "pieces": tuple(range(1, self._most_pieces(w) + 1)),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        extent = SparseGeometry.of(w, 1).extent
        options = []
        for count in range(1, min(extent, _MOST_TASKS) + 1):
            chunk = -(-extent // count)
            if SparseGeometry.of(w, 1).flat:
                chunk = min(extent, -(-chunk // target.lanes) * target.lanes)
            for shifted in _shifts(w):
                g = SparseGeometry.of(w, chunk, shifted=shifted)
                for tile, depth in product(self._tiles(w, g, target), _depths(g, target)):
                    for pieces in costs.piece_counts(self._most_pieces(w), target):
                        params = {
                            "channels": tile.channels, "vectors": tile.vectors, "chunk": chunk,
                            "depth": depth, "shifted": shifted, "pieces": pieces,
                        }  # fmt: skip
                        options.append((self.cost(w, params, target), count * pieces, params))
        return min(options, key=lambda option: option[:2])[-1]

    def _tiles(self, w: ConvWorkload, g: SparseGeometry, target: CpuTarget) -> list[SparseTile]:
        """For each size of panel, the tile that takes the fewest cycles for a task's positions."""
        vectors = -(-g.positions // target.lanes)
        best: dict[int, tuple[float, SparseTile]] = {}
        for tile in legal_tiles(self._panels(w), g.positions, w.out_channels, target):
            cycles = pass_cycles(tile, vectors, g.lines(target.unit_lanes), target)
            if tile.channels not in best or cycles < best[tile.channels][0]:
                best[tile.channels] = cycles, tile
        return [tile for _, tile in best.values()]

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g = workload, geometry(workload, params, target)
        tile = SparseTile(params["channels"], params["vectors"])
        vectors = -(-g.positions // target.lanes)
        kept = w.sparsity.kept(tile.channels)
        count, pieces = tasks(w, g), params["pieces"]
        cycles = kept * pass_cycles(tile, vectors, g.lines(target.unit_lanes), target)
        # Vectors that come from the second cache, and sums that wait in it.
        others = kept * vectors * _L2_CYCLES * costs.beyond(4 * g.size, target.l1d / 2, target.l1d)
        runs = -(-w.out_channels // tile.channels) * -(-vectors // tile.vectors)
        waiting = _RUN_CYCLES * runs + _WAIT_CYCLES * vectors * w.out_channels
        others += (w.in_channels // g.channels - 1) * waiting
        others += _COPY_CYCLES * pieces * w.in_channels * g.plane / target.lanes
        others += _FINISH_CYCLES * vectors * w.out_channels
        # Two vectors of multiply-adds a cycle are the peak; with two passes it's two of the core's.
        cycles += others * target.unit_lanes / target.lanes
        work = count * (cycles * 4 * target.lanes / target.fma_peak + pieces * _TASK_SECONDS)
        nbytes = 4 * kept * (tile.channels + 1)
        work += costs.reread(nbytes, count, target)
        # Each panel takes its columns of the copy from where that is.
        columns = w.in_channels * prod(w.kernel)
        work += count * costs.overflow(4 * g.size * pieces, kept / columns, target)
        return costs.shared_out(work, count * pieces, w.bytes - w.weight_bytes + nbytes, target)

    def _panels(self, w: ConvWorkload) -> tuple[int, ...]:
        """The panels that don't reach from one group, with its own columns, into the next."""
        per_group = w.out_channels // w.groups
        return tuple(r for r in self.panels if w.groups == 1 or per_group % r == 0)

    def _most_pieces(self, w: ConvWorkload) -> int:
        """Panels that there are at least."""
        return -(-w.out_channels // self._panels(w)[-1])

    def pack(
        self, workload: ConvWorkload, params: Params, target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:  # fmt: skip
        w = workload
        g = geometry(w, params, target)
        taps = prod(w.kernel)
        # The filters of a group have zeros in all columns of the others.
        per_group = w.in_channels // w.groups
        dense = np.zeros((w.groups, w.out_channels // w.groups, w.groups, per_group * taps), "f4")
        group = np.arange(w.groups)
        dense[group, :, group] = weights[0].reshape(w.groups, -1, per_group * taps)
        by_part = dense.reshape(w.out_channels, -1, g.channels * taps)
        parts = [
            ColumnPanels.from_dense(by_part[:, part], params["channels"])
            for part in range(by_part.shape[1])
        ]
        kept = np.stack([np.diff(panels.pointers) for panels in parts])
        shares = equal_shares(run_pointers(kept.sum(axis=0)), params["pieces"])
        offsets = g.offsets().reshape(-1)
        return [
            np.concatenate([panels.values for panels in parts]),
            np.concatenate([offsets[panels.columns] for panels in parts]),
            run_pointers(kept.reshape(-1), "int32"),
            shares,
        ]

    def kernel(
        self, workload: ConvWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        return emit.build(lambda: emit_sparse_conv(workload, params, target))


def _shifts(w: ConvWorkload) -> tuple[bool, ...]:
    """Whether planes may be shifted; with one tap in a row they would be the same."""
    return (False, True) if w.kernel[-1] > 1 else (False,)


def _depths(g: SparseGeometry, target: CpuTarget) -> list[int]:
    """All channels at once, and the most that fill half the first cache, or all of it."""
    found = {g.channels}
    for nbytes in (target.l1d / 2, target.l1d):
        fitting = [d for d in cuts.divisors(g.channels) if 4 * d * g.plane <= nbytes]
        found.update(fitting[-1:])
    return sorted(found)
