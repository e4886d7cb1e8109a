"""Product of 8-bit activations (M, K) with constant 8-bit weights (K, N), sums in registers.

The words of `dot_product`'s instruction are neighbours along K, so rows are read in place where K
fills words. Otherwise, and for bytes of the other sign, each task copies its rows first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit, vectors
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, register
from tvm_ext.schedules.dot_product import dot_product, tile_target
from tvm_ext.schedules.int8_kernel import IntegerTile
from tvm_ext.schedules.int8_spatial_pack import GAIN
from tvm_ext.schedules.quantized_stage import flipped
from tvm_ext.schedules.quantized_workload import QuantizedMatmulWorkload
from tvm_ext.schedules.requantize import folded_bias, requantized
from tvm_ext.schedules.tiles import Tile, best_tile, efficiency, legal_tiles
from tvm_ext.target import CpuTarget

# Words that the inner loop unrolls at most.
_MOST_WORDS = 4


@register
class Int8Gemm(Algorithm[QuantizedMatmulWorkload]):
    """Panels of weight words over tiles of rows.

    Parameters of the plan: `tile` rows and `blocks` column vectors in registers; `chunk` rows of a
    task; `pieces` parts of the columns that threads share.
    """

    name: ClassVar[str] = "int8_gemm"
    workload_type: ClassVar[type] = QuantizedMatmulWorkload

    def supports(self, workload: QuantizedMatmulWorkload, target: CpuTarget) -> Support:
        return YES

    def space(
        self, workload: QuantizedMatmulWorkload, target: CpuTarget
    ) -> dict[str, tuple[Any, ...]]:
        blocks = _blocks(workload, target)
        tiles = legal_tiles(workload.rows, blocks, tile_target(target))
        return {
            "tile": tuple(sorted({t.rows for t in tiles})),
            "blocks": tuple(sorted({t.columns for t in tiles})),
            "chunk": tuple(range(1, workload.rows + 1)),
            "pieces": tuple(range(1, blocks + 1)),
        }

    def default(self, workload: QuantizedMatmulWorkload, target: CpuTarget) -> dict[str, Any]:
        w, blocks = workload, _blocks(workload, target)
        tile = best_tile(w.rows, blocks, tile_target(target))
        panels = -(-blocks // tile.columns)
        options = []
        for tasks in sorted({1, target.cores, 2 * target.cores, 4 * target.cores}):
            chunk = min(w.rows, -(-w.rows // tasks // tile.rows) * tile.rows or tile.rows)
            for pieces in costs.piece_counts(panels, target):
                params = {
                    "tile": tile.rows, "blocks": tile.columns, "chunk": chunk, "pieces": pieces,
                }  # fmt: skip
                options.append((self.cost(w, params, target), pieces, chunk, params))
        return min(options, key=lambda option: option[:3])[-1]

    def cost(self, workload: QuantizedMatmulWorkload, params: Params, target: CpuTarget) -> float:
        w, dot, blocks = workload, dot_product(target), _blocks(workload, target)
        padded = blocks * target.lanes / w.columns * dot.words(w.depth) * dot.group / w.depth
        share = efficiency(Tile(params["tile"], params["blocks"]), w.rows, blocks, target)
        work = 2 * w.macs * padded / (share * target.fma_peak * GAIN[dot.group])
        tasks = -(-w.rows // params["chunk"])
        work += costs.reread(4 / dot.group * w.weight_bytes * padded, tasks - 1, target)
        return costs.shared_out(work, tasks * params["pieces"], w.bytes, target)

    def pack(
        self,
        workload: QuantizedMatmulWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        w, v, dot = workload, target.lanes, dot_product(target)
        values, bias, scales = weights
        blocks, words = _blocks(w, target), dot.words(w.depth)
        at = np.concatenate([np.arange(v) + _first(b, w.columns, v) for b in range(blocks)])
        missing = max(0, v - w.columns)
        data = np.pad(values.T, [(0, missing), (0, 0)])[at]
        packed = dot.pack(data).reshape(blocks, v, words)
        panels = cuts.cut_panels(packed, 0, params["blocks"], at=0).transpose(0, 3, 1, 2)
        sums = values.sum(0, dtype="int64")
        folded = folded_bias(bias, sums, w.x_zero + dot.shift(w.dtype))
        return [
            np.ascontiguousarray(panels),
            np.pad(folded, (0, missing))[at].reshape(blocks, v),
            np.pad(scales, (0, missing), constant_values=1)[at].reshape(blocks, v),
        ]

    def kernel(
        self,
        workload: QuantizedMatmulWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target))

    def tolerance(self, workload: QuantizedMatmulWorkload, params: Params) -> float:
        return 0.0


def _blocks(w: QuantizedMatmulWorkload, target: CpuTarget) -> int:
    """Vectors of columns; the last one overlaps its neighbour where they don't divide."""
    return -(-w.columns // target.lanes)


def _first(block: Any, columns: int, lanes: int) -> Any:
    """First column of a vector."""
    return cuts.panel_start(block, lanes, columns)


def _emit(w: QuantizedMatmulWorkload, params: Params, target: CpuTarget) -> None:
    v, dot, width = target.lanes, dot_product(target), params["blocks"]
    words, blocks = dot.words(w.depth), _blocks(w, target)
    panels, step = -(-blocks // width), gcd(words, _MOST_WORDS)
    data = emit.argument("data", (w.rows, w.depth), w.dtype)
    weight = emit.argument("weight", (panels, words, width, v), "int32")
    bias = emit.argument("bias", (blocks, v), "int32")
    scale = emit.argument("scale", (blocks, v), "float32")
    out = emit.argument("out", w.out_shape, w.dtype)
    in_place = dot.group == 4 and not dot.shift(w.dtype) and w.depth % 4 == 0
    whole = emit.view(data, (w.rows, words), "int32") if in_place else None
    chunk = params["chunk"]
    piece_panels = -(-panels // params["pieces"])
    pieces = -(-panels // piece_panels)

    def task(first: Any, count: int, piece: Any) -> None:
        source, base = whole, first
        if source is None:
            source, base = emit.workspace((count, words), "int32"), 0
            with emit.loop(count) as m:
                _copy_row(w, target, data, source, first + m, m)
        with emit.loop(piece_panels) as p:
            panel = piece * piece_panels + p

            def body() -> None:
                offset = 0
                for tiles, height in cuts.split_extent(count, params["tile"]):
                    with emit.loop(tiles) as t:
                        tile(source, base, panel, first, offset + t * height, height)
                    offset += tiles * height

            if panels % piece_panels:
                with T.If(panel < panels), T.Then():
                    body()
            else:
                body()

    def tile(source: Any, base: Any, panel: Any, first: Any, row: Any, height: int) -> None:
        sums = IntegerTile(height, width, v)
        sums.zero()
        with emit.loop(words // step) as k:
            for i in range(step):
                sums.accumulate(
                    dot,
                    lambda r, i=i: source[base + row + r, k * step + i],
                    lambda c, i=i: vectors.load(weight, [panel, k * step + i, c, 0], v),
                )
        start = cuts.panel_start(panel, width, blocks)
        for r in range(height):
            for c in range(min(width, blocks)):
                total = sums.get(r, c) + vectors.load(bias, [start + c, 0], v)
                factor = vectors.load(scale, [start + c, 0], v)
                value = requantized(total, factor, w.result, w.dtype, v)
                if w.columns >= v:
                    at = _first(start + c, w.columns, v)
                    vectors.store(out, value, [first + row + r, at], v)
                    continue
                whole_vector = T.alloc_buffer((v,), w.dtype, scope="global")
                vectors.store(whole_vector, value, [0], v)
                for j in range(w.columns):
                    T.buffer_store(out, whole_vector[j], [first + row + r, j])

    full, rest = divmod(w.rows, chunk)
    with emit.parallel_tasks(full + bool(rest), pieces) as (c, piece):
        if not rest:
            task(c * chunk, chunk, piece)
        else:
            with T.If(c < full):
                with T.Then():
                    task(c * chunk, chunk, piece)
                with T.Else():
                    task(full * chunk, rest, piece)


def _copy_row(
    w: QuantizedMatmulWorkload, target: CpuTarget, data: Any, copy: Any, row: Any, to: Any
) -> None:
    """The words of one row, in the form that the instruction takes."""
    dot = dot_product(target)
    group, shift = dot.group, bool(dot.shift(w.dtype))
    bits, whole = 32 // group, w.depth // group

    def put(at: Any, size: int) -> None:
        x = vectors.load(data, [row, at * group], size * group)
        if group < 4:
            x = vectors.cast(x, f"int{bits}", size * group)
        if group > 1:
            x = vectors.reinterpret(x, "int32", size)
        vectors.store(copy, flipped(x, size) if shift else x, [to, at], size)

    if whole:
        emit.cover(whole, target.lanes, put)
    if w.depth % group:
        total: Any = None
        for j in range(w.depth % group):
            # What is past the end meets weights that are zero.
            x = tirx.Cast("int32", data[row, whole * group + j])
            x = (x & tirx.const((1 << bits) - 1, "int32")) << tirx.const(bits * j, "int32")
            total = x if total is None else total | x
        T.buffer_store(copy, flipped(total, 1) if shift else total, [to, whole])
