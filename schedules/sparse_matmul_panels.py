"""Products of many rows with a sparse matrix: what the algorithms share that keep columns of it.

A panel of outputs keeps the columns in which one of them isn't zero (`ColumnPanels`): what is zero
in all of them costs nothing, and a vector of rows that is read for a column serves every output of
the panel. `sparse_matmul_kernel` has the loops.

Vectors hold rows, whose copy is transposed for it. Vectors of outputs would spare the copy, but
only whole blocks of them could be skipped, and they would read single values of many rows: at low
densities most of each cache line for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.sparse_matmul_blocking import SparseBlocking, row_lanes
from tvm_ext.schedules.sparse_matmul_kernel import emit_sparse_matmul
from tvm_ext.schedules.sparse_product_columns import latency_cycles, side_by_side
from tvm_ext.schedules.sparse_product_costs import in_seconds, traffic
from tvm_ext.schedules.sparse_product_weights import column_dtype, filters, sparse_right_side
from tvm_ext.schedules.sparse_tile import SparseTile, legal_tiles
from tvm_ext.sparsity import ColumnPanels, equal_shares
from tvm_ext.sparsity.run_pointers import run_pointers
from tvm_ext.target import CpuTarget

_LEAST_ROWS = 2
_MOST_CHUNKS = 64
_MOST_PARTS = 64
# Reads of a cache line a cycle that a core sustains beside multiply-adds.
_LINES = 1.6
# Cycles that a cache line takes longer when it comes from the L2 cache; in which an element of the
# rows is copied, a tile starts and ends, a vector of sums is read and written between two parts,
# and a vector of results is transposed and stored.
_LINE_CYCLES = 1.1
_COPY_CYCLES = 0.4
_TILE_CYCLES = 30.0
_WAITING_CYCLES = 4.0
_FINISH_CYCLES = 8.0


class SparsePanels(Algorithm[MatmulWorkload]):
    """Left side and output in rows that one stride walks; kept columns of each panel.

    A subclass names the numbers of outputs that its `panels` may have.

    Parameters of the plan: `outputs` of a panel and `vectors` of rows in registers; `chunks` parts
    of the rows and `pieces` parts of the outputs, equal in what they keep, that threads share;
    `k_parts` parts of the reduction, of each of which the rows' copy stays in cache.
    """

    workload_type: ClassVar[type] = MatmulWorkload
    panels: ClassVar[tuple[int, ...]]

    def supports(self, workload: MatmulWorkload, target: CpuTarget) -> Support:
        if (rows := fold_batch(workload).m) < _LEAST_ROWS:
            return refuse(f"{rows} rows; at least {_LEAST_ROWS}")
        return sparse_right_side(workload)

    def space(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        w, rows = workload, fold_batch(workload).m
        tiles = self._tiles(w, rows, target)
        return {
            "outputs": tuple(sorted({t.channels for t in tiles})),
            "vectors": tuple(sorted({t.vectors for t in tiles})),
            "chunks": tuple(range(1, rows + 1)),
            "pieces": tuple(range(1, -(-w.n // row_lanes(w, target)) + 1)),
            "k_parts": cuts.divisors(w.k, _MOST_PARTS),
        }

    def _tiles(self, w: MatmulWorkload, rows: int, target: CpuTarget) -> list[SparseTile]:
        width = row_lanes(w, target)
        panels = [size for size in self.panels if size <= width]
        return legal_tiles(panels, rows, w.n, target)

    def default(self, workload: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        w, strips = workload, -(-workload.n // row_lanes(workload, target))
        choices = [
            (self._seconds(w, b, pieces, target), b, pieces)
            for b in self._blockings(w, target)
            for pieces in costs.piece_counts(strips, target)
        ]
        _, b, pieces = min(choices, key=lambda choice: choice[0])
        return {
            "outputs": b.outputs, "vectors": b.vectors, "chunks": b.chunks, "pieces": pieces,
            "k_parts": b.parts,
        }  # fmt: skip

    def _blockings(self, w: MatmulWorkload, target: CpuTarget) -> Iterator[SparseBlocking]:
        """Cuts among which the best is."""
        rows, width = fold_batch(w).m, row_lanes(w, target)
        vectors = -(-rows // width)
        # The fewest chunks for each number of vectors that a chunk may have.
        most = min(_MOST_CHUNKS, vectors)
        chunks_of = {-(-vectors // chunks): chunks for chunks in range(most, 0, -1)}
        for positions, chunks in chunks_of.items():
            for tile in self._tiles(w, positions * width, target):
                # Of the tiles that cut the chunk alike, the smallest.
                if -(-positions // -(-positions // tile.vectors)) != tile.vectors:
                    continue
                for parts in cuts.divisors(w.k, _MOST_PARTS):
                    b = SparseBlocking(
                        rows, w.n, w.k, width, tile.channels, tile.vectors, chunks, parts
                    )
                    yield b
                    if tile.vectors < positions or 4 * b.steps * b.pitch <= target.l1d:
                        break

    def cost(self, workload: MatmulWorkload, params: Params, target: CpuTarget) -> float:
        b = SparseBlocking.of(workload, params, target)
        return self._seconds(workload, b, params["pieces"], target)

    def _seconds(
        self, w: MatmulWorkload, b: SparseBlocking, pieces: int, target: CpuTarget
    ) -> float:
        kept, tiles = w.sparsity.kept(b.outputs), b.tiles
        copy, sums = 4 * b.steps * b.pitch, 4 * b.strips * b.width * b.pitch
        column = sum(count * _column_cycles(b.outputs, size, target) for count, size in tiles)
        lines = 4 * b.positions * b.width / emit.LINE_BYTES
        column += _LINE_CYCLES * lines * max(0.0, 1 - target.l1d / copy)
        starts = _TILE_CYCLES * sum(count for count, _ in tiles)
        if b.parts > 1:
            starts += _WAITING_CYCLES * b.outputs * b.positions
        cycles = kept * column + b.strips * b.strip_panels * b.parts * starts
        cycles += _COPY_CYCLES * pieces * w.k * b.positions * b.width
        cycles += _FINISH_CYCLES * b.n * b.positions
        nbytes = kept * (4 * b.outputs + np.dtype(column_dtype(w.k)).itemsize)
        task = in_seconds(cycles, target) + costs.overflow(nbytes, 1, target)
        # Each panel takes its columns of the copy from where that is.
        task += costs.overflow(copy, kept / w.k, target)
        if b.parts > 1:
            task += costs.overflow(sums / pieces, b.parts * pieces, target)
        cores = costs.busy_cores(b.tasks * pieces, target)
        return b.tasks * task / cores + traffic(w, nbytes, target)

    def pack(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        b = SparseBlocking.of(workload, params, target)
        matrix = filters(workload, weights[0])
        matrix = np.pad(matrix, [(0, b.strips * b.width - b.n), (0, 0)])
        # The panels of the first part, then those of the next.
        parts = matrix.reshape(len(matrix), b.parts, b.steps).swapaxes(0, 1)
        panels = ColumnPanels.from_dense(parts.reshape(-1, b.steps), b.outputs)
        kept = np.diff(panels.pointers).reshape(b.parts, b.strips, b.strip_panels).sum((0, 2))
        shares = equal_shares(run_pointers(kept), params["pieces"])
        shares *= b.strip_panels
        columns = panels.columns.astype(column_dtype(workload.k))
        return [panels.values, columns, panels.pointers, shares]

    def kernel(
        self,
        workload: MatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        b = SparseBlocking.of(workload, params, target)
        return emit.build(lambda: emit_sparse_matmul(workload, b, params["pieces"]))


def _column_cycles(outputs: int, vectors: int, target: CpuTarget) -> float:
    """Cycles for one column of a tile, whose rows are in the L1 cache."""
    if side_by_side(outputs * vectors) == 1:
        return SparseTile(outputs, vectors).cycles(1.0, target)
    return max((outputs + vectors + 1) / _LINES, latency_cycles(outputs * vectors))
