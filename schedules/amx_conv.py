"""Convolution on AMX, each float32 factor as the sum of two or three bfloat16 terms.

Three products of terms instead of one of float32 values, on a unit that does 16 times as many of
them. `amx_conv_kernel` has the loops, `split_words` the error and what becomes of special values.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules import amx, costs, cuts, emit
from tvm_ext.schedules.amx_conv_kernel import band_extent, band_rows, emit_amx_conv
from tvm_ext.schedules.amx_conv_stage import channel_groups
from tvm_ext.schedules.amx_costs import Passes, best_cut
from tvm_ext.schedules.amx_planes import Planes
from tvm_ext.schedules.amx_product import DEFAULT_PRODUCTS, TOLERANCES, TileCut, cut_space
from tvm_ext.schedules.base import Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.conv_geometry import lifted
from tvm_ext.schedules.conv_prologue import pack_constants, supports_prologue
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_stage import rows_needed, stage_seconds, supports_pool
from tvm_ext.schedules.split_words import pack_panels
from tvm_ext.target import CpuTarget


@register
class AmxConv(Algorithm[ConvWorkload]):
    """Blocked input and output, weights as tiles of bfloat16 terms.

    Parameters of the plan: `tile` positions in a register tile, `down` x `across` such tiles of
    sums; `products` of terms, of two terms each or, for 6, three; `rows` of the convolution's
    output whose split input stays in cache while all weights pass; `pieces` parts of the output
    channels that threads share, after they have split the input together.
    """

    name: ClassVar[str] = "amx_conv"
    workload_type: ClassVar[type] = ConvWorkload
    features: ClassVar[tuple[str, ...]] = amx.FEATURES

    def supports(self, workload: ConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if not (support := amx.supports_amx(target)):
            return support
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if w.groups != 1:
            return refuse(f"groups {w.groups}; only 1")
        if len(w.spatial) > 2:
            return refuse(f"{len(w.spatial)} spatial dimensions; at most 2")
        return supports_prologue(w) and supports_pool(w)

    def layouts(self, workload: ConvWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((amx.LANES, amx.LANES),)

    def space(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        blocks = _blocks(workload)
        return {
            **cut_space(blocks),
            "rows": tuple(_rows(workload)),
            "pieces": tuple(range(1, blocks + 1)),
        }

    def default(self, workload: ConvWorkload, target: CpuTarget) -> dict[str, Any]:
        w, blocks, options = lifted(workload), _blocks(workload), []
        height, legal = w.conv_spatial[0], _rows(w)
        for rows in sorted({-(-height // bands) for bands in range(1, height + 1)} & set(legal)):
            positions = Planes.of(w, band_rows(w, rows)[1]).positions
            cut = best_cut(positions, blocks, DEFAULT_PRODUCTS)
            for pieces in costs.piece_counts(-(-blocks // cut.across), target):
                params = {**cut.params, "rows": rows, "pieces": pieces}
                options.append((self.cost(workload, params, target), params))
        return min(options, key=lambda option: option[0])[1]

    def check(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> str:
        if wrong := super().check(workload, params, target):
            return wrong
        w = lifted(workload)
        positions = Planes.of(w, band_rows(w, params["rows"])[1]).positions
        problem = TileCut.of(params).problem(positions, _blocks(w))
        return f"{self.name}: {problem}" if problem else ""

    def cost(self, workload: ConvWorkload, params: Params, target: CpuTarget) -> float:
        w, cut = lifted(workload), TileCut.of(params)
        share, rows = band_rows(w, params["rows"])
        planes = Planes.of(w, rows)
        passes = Passes(
            cut, bands=-(-band_extent(w) // share) * w.batch, positions=planes.positions,
            staged=planes.all_positions, groups=channel_groups(w), taps=prod(w.kernel),
            panels=-(-_blocks(w) // cut.across), pieces=params["pieces"], nbytes=w.bytes,
        )  # fmt: skip
        return passes.seconds(target) + stage_seconds(w, target) / target.cores

    def tolerance(self, workload: ConvWorkload, params: Params) -> float:
        return TOLERANCES[params["products"]]

    def pack(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, blocks = workload, _blocks(workload)
        data = weights[0].reshape(w.out_channels, w.in_channels, prod(w.kernel))
        data = np.pad(data, [(0, blocks * amx.LANES - w.out_channels), (0, 0), (0, 0)])
        data = data.transpose(2, 1, 0).reshape(prod(w.kernel), w.in_channels, blocks, amx.LANES)
        panels = cuts.cut_panels(data, 2, params["across"], at=0)
        words = pack_panels(panels, TileCut.of(params).terms)
        return [words, *pack_constants(w, target, weights[1:])]

    def kernel(
        self,
        workload: ConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: emit_amx_conv(workload, params, target))


def _blocks(w: ConvWorkload) -> int:
    """Vectors of output channels."""
    return -(-w.out_channels // amx.LANES)


def _rows(w: ConvWorkload) -> range:
    """How many rows of the convolution a band can have."""
    return range(rows_needed(w, 1), lifted(w).conv_spatial[0] + 1)
