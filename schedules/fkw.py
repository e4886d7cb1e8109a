"""Convolution of kernels that each keep one of a few patterns of taps, or nothing.

Filters, kernels and weights are stored as FKW (`tvm_ext.sparsity.Fkw`). The code has a loop for
each pattern of the layer, in which every place is known but for the channel's: nothing is looked up
or tested there, and what a kernel reads is loaded once (`fkw_kernel`). Only few patterns make code
that fits the cache and loops that are worth it.

Patterns, format, and the elimination of redundant loads are those of Niu et al., "PatDNN" (2020),
and XGen (2022, section 2.3.1). To keep the sums of a kernel's columns apart and to shift them last
is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_prologue import refuse_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.fkw_costs import most_rows, task_cycles, traffic_seconds
from tvm_ext.schedules.fkw_geometry import FkwGeometry
from tvm_ext.schedules.fkw_kernel import emit_fkw
from tvm_ext.schedules.pool_stage import refuse_pool
from tvm_ext.schedules.sparse_support import supports_zeros
from tvm_ext.sparsity import equal_shares
from tvm_ext.sparsity.fkw import Fkw as FkwWeights
from tvm_ext.sparsity.kernel_patterns import MOST_PATTERNS, MOST_TAPS, Pattern
from tvm_ext.sparsity.run_pointers import run_pointers
from tvm_ext.target import CpuTarget

_TASK_SECONDS = 2e-7


@register
class Fkw(Algorithm[ConvWorkload]):
    """Planar input and output, weights as FKW.

    Parameters of the plan: the `patterns` that the code is for, as text: "0,1,4 1,4" are two;
    `rows` of a register tile, at most; `chunk` rows and `strip` vectors of columns that a task
    computes; `fold` rows in a vector, where they are short; `pieces` parts of the filters, equal in
    their weights, that threads share.
    """

    name: ClassVar[str] = "fkw"
    workload_type: ClassVar[type] = ConvWorkload
    storage: ClassVar[str] = "fkw"

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if not (support := supports_zeros(w)):
            return support
        if len(w.kernel) != 2:
            return refuse(f"{len(w.kernel)} spatial dimensions; only 2")
        if not 1 < prod(w.kernel) <= MOST_TAPS:
            label = "x".join(map(str, w.kernel))
            return refuse(f"a {label} kernel; patterns are of 2 to {MOST_TAPS} taps")
        found = w.sparsity.patterns
        if found is None:
            return refuse("the patterns of its kernels weren't counted")
        if found.distinct > MOST_PATTERNS:
            return refuse(f"kernels of {found.distinct} patterns; at most {MOST_PATTERNS}")
        return refuse_prologue(w) and refuse_pool(w)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        w, patterns = workload, workload.sparsity.patterns.taps
        height = w.conv_spatial[0]
        g = FkwGeometry.of(w, patterns, target.lanes)
        return {
            "patterns": (_text(patterns),),
            "rows": tuple(range(1, most_rows(len(g.shifts), target) + 1)),
            "chunk": tuple(range(1, height + 1)),
            "strip": g.strips,
            "fold": tuple(n for n in cuts.divisors(target.lanes, height) if g.may_fold(n)),
            "pieces": tuple(range(1, w.out_channels + 1)),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        options = list(self._candidates(workload, target))
        seconds = [self.cost(workload, params, target) for params in options]
        return options[int(np.argmin(seconds))]

    def _candidates(self, w: ConvWorkload, target: CpuTarget) -> Iterator[dict[str, Any]]:
        space, height = self.space(w, target), w.conv_spatial[0]
        # A strip of all columns, and narrow ones.
        strips = sorted({*space["strip"][:2], space["strip"][-1]})
        for fold in space["fold"]:
            for rows in space["rows"][len(space["rows"]) // 2 :]:
                # Tasks of one tile and of a few; equal ones; one of all rows.
                tiles = {min(height, rows * fold * count) for count in (1, 2, 4)}
                for chunk in sorted(tiles | {-(-height // count) for count in (1, 2, 3, 4)}):
                    for strip in strips:
                        for pieces in costs.piece_counts(w.out_channels, target):
                            yield {
                                "patterns": space["patterns"][0],
                                "rows": min(rows, -(-chunk // fold)),
                                "chunk": chunk, "strip": strip, "fold": fold, "pieces": pieces,
                            }  # fmt: skip

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, g, pieces = workload, _geometry(workload, params, target), params["pieces"]
        cycles = task_cycles(g, w.sparsity, w.out_channels, params["rows"], pieces, target)
        count = w.batch * -(-g.out[0] // g.chunk) * -(-g.out[1] // g.strip_columns)
        # Two vectors of multiply-adds a cycle are the peak.
        work = count * (cycles * 4 * target.lanes / target.fma_peak + pieces * _TASK_SECONDS)
        kernels = sum(w.sparsity.patterns.kernels)
        nbytes = 4 * w.sparsity.nonzeros + kernels
        work += costs.reread(nbytes, count, target)
        activations = 4 * (prod(w.in_shape) + prod(w.out_shape))
        work += count * traffic_seconds(g, activations, w.out_channels, pieces, target)
        work += count * costs.overflow(4 * g.size * pieces, kernels / w.in_channels, target)
        return costs.shared_out(work, count * pieces, w.bytes - w.weight_bytes + nbytes, target)

    def pack(
        self, workload: ConvWorkload, params: Params, target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:  # fmt: skip
        stored = FkwWeights.from_dense(weights[0], workload.groups)
        first_kernel = run_pointers(stored.strides[:, -1])
        sizes = np.array([len(taps) for taps in stored.patterns], "int64")
        first_weight = run_pointers(sizes[stored.pattern_ids])[first_kernel]
        filters = equal_shares(first_weight, params["pieces"])
        shares = np.stack([filters, first_kernel[filters], first_weight[filters]], axis=1)
        return [stored.weights, stored.order, stored.strides, stored.indices, shares]

    def kernel(
        self, workload: ConvWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        w, g, patterns = workload, _geometry(workload, params, target), _patterns(params)
        return emit.build(lambda: emit_fkw(w, g, patterns, params["rows"], params["pieces"]))


def _geometry(w: ConvWorkload, params: Params, target: CpuTarget) -> FkwGeometry:
    return FkwGeometry.of(
        w, _patterns(params), target.lanes, params["chunk"], params["strip"], params["fold"]
    )


def _text(patterns: tuple[Pattern, ...]) -> str:
    return " ".join(",".join(map(str, taps)) for taps in patterns)


def _patterns(params: Params) -> tuple[Pattern, ...]:
    return tuple(tuple(map(int, taps.split(","))) for taps in params["patterns"].split())
