"""Convolution that skips zeros: what the algorithms share that keep columns of weights.

A panel of output channels keeps the (input channel, tap) columns in which one of them isn't zero
(`ColumnPanels`): what is zero in all of them costs nothing, and a vector of the input that is read
for a column serves every channel of the panel. `sparse_conv_kernel` has the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse
from tvm_ext.schedules.conv_prologue import refuse_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_stage import refuse_pool
from tvm_ext.schedules.sparse_conv_kernel import emit_sparse_conv, geometry, tasks
from tvm_ext.schedules.sparse_geometry import SparseGeometry
from tvm_ext.schedules.sparse_tile import SparseTile, legal_tiles, pass_cycles
from tvm_ext.sparsity import ColumnPanels, equal_shares
from tvm_ext.target import CpuTarget

_MOST_TASKS = 64
_TASK_SECONDS = 2e-7
# Cycles in which a vector is copied, or finished and stored.
_COPY_CYCLES = 1.5
_FINISH_CYCLES = 4.0


class SparseConv(Algorithm[ConvWorkload]):
    """Planar input and output; of the weights, the columns of each panel that aren't zero.

    A subclass names the numbers of channels that its `panels` may have.

    Parameters of the plan: `channels` of a panel and `vectors` of positions in registers; `chunk`
    rows (or positions, when the kernel is 1x1) that a task computes; `pieces` parts of the panels,
    equal in what they keep, that threads share.
    """

    workload_type: ClassVar[type] = ConvWorkload
    panels: ClassVar[tuple[int, ...]]

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        if workload.dtype != "float32":
            return refuse(f"dtype {workload.dtype}; only float32")
        if workload.sparsity is None:
            return refuse("hardly any weight is zero")
        if not self._panels(workload):
            per_group = workload.out_channels // workload.groups
            return refuse(
                f"{per_group} output channels a group don't fill panels of {self.panels[0]}"
            )
        return refuse_prologue(workload) and refuse_pool(workload)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        w = workload
        extent = SparseGeometry.of(w, 1).extent
        whole = SparseGeometry.of(w, extent)
        tiles = legal_tiles(self._panels(w), whole.positions, w.out_channels, target)
        return {
            "channels": tuple(sorted({t.channels for t in tiles})),
            "vectors": tuple(sorted({t.vectors for t in tiles})),
            "chunk": tuple(range(1, extent + 1)),
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
            g = SparseGeometry.of(w, chunk)
            for tile in self._tiles(w, g, target):
                for pieces in sorted({1, min(target.cores, self._most_pieces(w))}):
                    params = {
                        "channels": tile.channels, "vectors": tile.vectors, "chunk": chunk,
                        "pieces": pieces,
                    }  # fmt: skip
                    options.append((self.cost(w, params, target), count * pieces, params))
        return min(options, key=lambda option: option[:2])[-1]

    def _tiles(self, w: ConvWorkload, g: SparseGeometry, target: CpuTarget) -> list[SparseTile]:
        """For each size of panel, the tile that takes the fewest cycles for a task's positions."""
        vectors = -(-g.positions // target.lanes)
        best: dict[int, tuple[float, SparseTile]] = {}
        for tile in legal_tiles(self._panels(w), g.positions, w.out_channels, target):
            cycles = pass_cycles(tile, vectors, g.flat, target)
            if tile.channels not in best or cycles < best[tile.channels][0]:
                best[tile.channels] = cycles, tile
        return [tile for _, tile in best.values()]

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g = workload, geometry(workload, params, target)
        tile = SparseTile(params["channels"], params["vectors"])
        vectors = -(-g.positions // target.lanes)
        kept = w.sparsity.kept(tile.channels)
        count, pieces = tasks(w, g), params["pieces"]
        cycles = kept * pass_cycles(tile, vectors, g.flat, target)
        cycles += _COPY_CYCLES * pieces * g.size / target.lanes
        cycles += _FINISH_CYCLES * vectors * w.out_channels
        # Two vectors of multiply-adds a cycle are the peak.
        work = count * (cycles * 4 * target.lanes / target.fma_peak + pieces * _TASK_SECONDS)
        nbytes = 4 * kept * (tile.channels + 1)
        level = target.shared_bandwidth if nbytes < target.l3 else target.memory_bandwidth
        work += max(0.0, nbytes - costs.L2_SHARE * target.l2) * count / level
        # Each panel takes its columns of the copy from where that is.
        columns = w.in_channels * prod(w.kernel)
        work += count * costs.overflow(4 * g.size * pieces, kept / columns, target)
        jobs = count * pieces
        moved = w.bytes - w.weight_bytes + nbytes
        return costs.overlapped(
            work * -(-jobs // target.cores) / jobs, 0.7 * moved / target.memory_bandwidth
        )

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
        columns = geometry(w, params, target).offsets().reshape(w.groups, -1)
        # The filters of a group have zeros in all columns of the others.
        dense = np.zeros((w.groups, w.out_channels // w.groups, *columns.shape), "float32")
        group = np.arange(w.groups)
        dense[group, :, group] = weights[0].reshape(w.groups, *dense.shape[1:2], -1)
        panels = ColumnPanels.from_dense(dense.reshape(w.out_channels, -1), params["channels"])
        shares = equal_shares(panels.pointers, params["pieces"])
        return [panels.values, columns.reshape(-1)[panels.columns], panels.pointers, shares]

    def kernel(
        self, workload: ConvWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        return emit.build(lambda: emit_sparse_conv(workload, params, target))
