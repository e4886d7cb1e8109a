"""How attention is cut: the two products' tiles, blocks of rows, tasks of the threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm_ext.schedules import costs, gemm, gemm_cuts
from tvm_ext.schedules.emit import LINE_BYTES
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.panel_copy import CYCLES, copy_way, readable
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.tiles import Tile
from tvm_ext.target import CpuTarget

# Share of the L2 cache that a block of scores may take; the rest is for keys and values.
_SCORES_SHARE = 0.125
# So many rows are worth to read all keys and values for, whatever the caches.
_LEAST_ROWS = 32
_MORE_BLOCKS = 4
_VECTORS = 4
# Estimates this close to each other are taken for the same.
_SAME = 1.02
# Share of the FMA peak that a row's exponentials reach.
_SOFTMAX_SHARE = 0.35


@dataclass(frozen=True)
class Cuts:
    """Attention of one batch element, cut.

    Attributes
    ----------
    scores, result : gemm.Blocking
        Of the two products, for one block of rows.
    row_blocks, tasks, task_blocks : int
        Blocks of rows, the tasks that share them, and the blocks of a task.
    vectors : int
        Of accumulators in a row's reductions.
    copy_keys, copy_values : bool
        Whether a task copies all panels of that side first.
    """

    scores: gemm.Blocking
    result: gemm.Blocking
    row_blocks: int
    tasks: int
    task_blocks: int
    vectors: int
    copy_keys: bool
    copy_values: bool

    @classmethod
    def of(cls, w: MatmulWorkload, p: Mapping[str, Any], lanes: int) -> Cuts:
        """The cuts that these parameters mean."""
        inner, rows = w.producer.producer, p["rows"]
        blocks = -(-w.m // rows)
        task_blocks = -(-blocks // p["chunks"])
        return cls(
            gemm.Blocking(rows, inner.n, inner.k, lanes, p["score_blocks"], p["score_tile"]),
            gemm.Blocking(rows, w.n, w.k, lanes, p["blocks"], p["tile"]),
            blocks, -(-blocks // task_blocks), task_blocks, p["vectors"], p["copy_keys"],
            p["copy_values"],
        )  # fmt: skip

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return self.scores.rows

    @property
    def padded(self) -> int:
        """Columns of the scores in whole vectors."""
        return -(-self.scores.n // self.scores.lanes) * self.scores.lanes


def score_stride(columns: int) -> int:
    """Floats from a row of scores to the next, as `emit.spread_rows` places them."""
    line = LINE_BYTES // 4
    return (-(-columns // line) | 1) * line


def best_cuts(w: MatmulWorkload, target: CpuTarget) -> dict[str, Any]:
    """The fastest of some parameters for a target's registers, caches and cores."""
    most = max(_LEAST_ROWS, int(_SCORES_SHARE * target.l2) // (4 * score_stride(w.k)))
    fewest = -(-w.m // most)
    # More blocks than that only where fewer rows suit the tiles, or more threads.
    found = {-(-w.m // blocks) for blocks in range(fewest, fewest + _MORE_BLOCKS)}
    parts = {min(target.cores, -(-w.m // rows)) for rows in found} | {1}
    choices = [_parameters(w, rows, c, target) for rows in sorted(found) for c in sorted(parts)]
    times = [seconds(w, p, target) for p in choices]
    close = [p for p, t in zip(choices, times, strict=True) if t <= _SAME * min(times)]
    # Each block passes through all keys and values, each part copies them.
    return min(close, key=lambda p: (p["chunks"], -p["rows"]))


def _parameters(w: MatmulWorkload, rows: int, chunks: int, target: CpuTarget) -> dict[str, Any]:
    inner = w.producer.producer
    score = gemm_cuts.best_panel_tile(rows, inner.n, target, inner.lhs.strides[-2])
    tile = gemm_cuts.best_panel_tile(rows, w.n, target, score_stride(w.k))
    return {
        "score_tile": score.rows, "score_blocks": score.columns, "tile": tile.rows,
        "blocks": tile.columns, "rows": rows, "chunks": chunks, "vectors": _VECTORS,
        "copy_keys": _copies(inner.rhs, w.m, score, target),
        "copy_values": _copies(w.rhs, w.m, tile, target),
    }  # fmt: skip


def _copies(view: StridedView, rows: int, tile: Tile, target: CpuTarget) -> bool:
    """Whether enough row tiles share a copy of a right side, or nothing else is possible."""
    return rows > 2 * tile.rows or not readable(view, target.lanes)


def seconds(w: MatmulWorkload, p: Mapping[str, Any], target: CpuTarget) -> float:
    """Estimated time on all cores."""
    inner, softmax = w.producer.producer, w.producer
    c = Cuts.of(w, p, target.lanes)
    compute = 0.0
    for product, b, stride in (
        (inner, c.scores, inner.lhs.strides[-2]), (w, c.result, score_stride(w.k)),
    ):  # fmt: skip
        tile = Tile(b.tile, b.blocks)
        share = gemm_cuts.panel_efficiency(tile, c.rows, b.n, target, stride)
        compute += 2 * product.macs / share
    steps = softmax.flops - inner.flops + softmax.epilogue.flops * softmax.rows * w.k
    compute += steps / _SOFTMAX_SHARE
    # The last block computes rows of the one before again, and so does a task past the end.
    compute *= c.tasks * c.task_blocks * c.rows / w.m
    for view, b, copied in (
        (inner.rhs, c.scores, c.copy_keys), (w.rhs, c.result, c.copy_values),
    ):  # fmt: skip
        if copied:
            # In operations that the FMA units could have done meanwhile.
            elements = prod(w.batch) * c.tasks * b.panels * min(b.span, b.n) * b.k
            compute += elements * CYCLES[copy_way(view, b.steps, b.lanes)] * 4 * b.lanes
    cores = costs.busy_cores(prod(w.batch) * c.tasks, target)
    return compute / (target.fma_peak * cores) + 0.5 * w.bytes / target.memory_bandwidth
