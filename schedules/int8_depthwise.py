"""Depthwise convolution of 8-bit integers on channel-blocked data.

One vector holds `lanes` channels of one position. Products of bytes are summed in float32, whose
24 bits hold every sum of up to 512 of them exactly; its multiply-add is one instruction, and
integer ones on 32 bits are slow or missing. Nothing is padded: taps outside count nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit, vectors
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.quantized_workload import QuantizedConvWorkload
from tvm_ext.schedules.requantize import padded_channels, requantized
from tvm_ext.target import CpuTarget

# Of 255 * 128 each, below 2**24 together.
_MOST_TAPS = 512
# Accumulators hide the latency of the multiply-add; the rest are inputs and weights.
_TILE = 8


@register
class Int8Depthwise(Algorithm[QuantizedConvWorkload]):
    """Blocked input and output, one filter for each channel.

    Parameters of the plan: `tile` output columns in registers; `parallel`, whether threads share
    the rows.
    """

    name: ClassVar[str] = "int8_depthwise"
    workload_type: ClassVar[type] = QuantizedConvWorkload

    def supports(self, workload: QuantizedConvWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.groups == 1 or not w.groups == w.in_channels == w.out_channels:
            return refuse(
                f"{w.in_channels} -> {w.out_channels} channels in {w.groups} groups; "
                "only as many groups as input and output channels"
            )
        if prod(w.kernel) > _MOST_TAPS:
            return refuse(f"{prod(w.kernel)} taps; at most {_MOST_TAPS}")
        return YES

    def layouts(
        self, workload: QuantizedConvWorkload, target: CpuTarget
    ) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes),)

    def space(
        self, workload: QuantizedConvWorkload, target: CpuTarget
    ) -> dict[str, tuple[Any, ...]]:
        tiles = range(1, min(workload.out_spatial[1], target.registers // 2) + 1)
        return {"tile": tuple(tiles), "parallel": (False, True)}

    def default(self, workload: QuantizedConvWorkload, target: CpuTarget) -> dict[str, Any]:
        return {
            "tile": min(workload.out_spatial[1], _TILE),
            "parallel": costs.copies_in_parallel(workload.bytes, target),
        }

    def cost(self, workload: QuantizedConvWorkload, params: Params, target: CpuTarget) -> float:
        w = workload
        cores = target.cores if params["parallel"] else 1
        padded = -(-w.in_channels // target.lanes) * target.lanes / w.in_channels
        # An input is converted for each row of taps that reads it, in about three instructions.
        conversions = 1 + 3 / min(w.kernel[1], params["tile"])
        compute = conversions * w.flops * padded / (0.6 * target.fma_peak * cores)
        return max(compute, w.bytes / target.bandwidth(cores)) + costs.fork(cores)

    def pack(
        self,
        workload: QuantizedConvWorkload,
        params: Params,
        target: CpuTarget,
        weights: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        v, channels = target.lanes, workload.out_channels
        blocks = -(-channels // v)
        values, bias, scales = weights
        data = values.reshape(channels, *workload.kernel).astype("float32")
        data = np.pad(data, [(0, blocks * v - channels), (0, 0), (0, 0)])
        data = data.reshape(blocks, v, *workload.kernel)
        return [
            np.ascontiguousarray(np.moveaxis(data, 1, -1)),
            padded_channels(bias, blocks * v, 0).reshape(blocks, v),
            padded_channels(scales, blocks * v, 1).reshape(blocks, v),
        ]

    def kernel(
        self,
        workload: QuantizedConvWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target.lanes))

    def tolerance(self, workload: QuantizedConvWorkload, params: Params) -> float:
        return 0.0


def _emit(w: QuantizedConvWorkload, params: Params, v: int) -> None:
    n, blocks, rows, columns, _ = stored_shape(w.out_shape, v)
    data = emit.argument("data", stored_shape(w.in_shape, v), w.dtype)
    weight = emit.argument("weight", (blocks, *w.kernel, v))
    bias = emit.argument("bias", (blocks, v), "int32")
    scale = emit.argument("scale", (blocks, v))
    out = emit.argument("out", stored_shape(w.out_shape, v), w.dtype)

    def column_of(x: Any, tap: int) -> Any:
        return x * w.strides[1] + tap * w.dilation[1] - w.pad_before[1]

    def taps_at(x: int) -> list[int]:
        return [j for j in range(w.kernel[1]) if 0 <= column_of(x, j) < w.spatial[1]]

    whole = [x for x in range(columns) if len(taps_at(x)) == w.kernel[1]]
    first, stop = (whole[0], whole[-1] + 1) if whole else (columns, columns)

    def tile(b: Any, k: Any, y: Any, x: Any, size: int, taps: list[int]) -> None:
        sums = [T.alloc_buffer((v,), "float32", scope="global") for _ in range(size)]
        for vector in sums:
            vectors.store(vector, vectors.constant(0.0, "float32", v), [0], v)
        with emit.loop(w.kernel[0]) as i:
            row = y * w.strides[0] + i * w.dilation[0] - w.pad_before[0]

            def line() -> None:
                # By input column, which is converted once for all outputs that read it.
                reads: dict[int, list[tuple[int, int]]] = {}
                for t, j in product(range(size), taps):
                    reads.setdefault(t * w.strides[1] + j * w.dilation[1], []).append((t, j))
                for offset in sorted(reads):
                    byte = vectors.load(data, [b, k, row, column_of(x, 0) + offset, 0], v)
                    whole = vectors.cast(byte, "int32", v)
                    if w.x_zero:
                        whole = whole - vectors.constant(w.x_zero, "int32", v)
                    value = vectors.hold(vectors.cast(whole, "float32", v), "float32", v)
                    for t, j in reads[offset]:
                        factor = vectors.load(weight, [k, i, j, 0], v)
                        total = vectors.load(sums[t], [0], v) + value * factor
                        vectors.store(sums[t], total, [0], v)

            if w.pad_before[0] or w.pad_after[0]:
                with T.If(tirx.all(row >= 0, row < w.spatial[0])), T.Then():
                    line()
            else:
                line()
        for t, vector in enumerate(sums):
            total = vectors.cast(vectors.load(vector, [0], v), "int32", v)
            total = total + vectors.load(bias, [k, 0], v)
            value = requantized(total, vectors.load(scale, [k, 0], v), w.result, w.dtype, v)
            vectors.store(out, value, [b, k, y, x + t, 0], v)

    with emit.tasks(params["parallel"], n, blocks, rows) as (b, k, y):
        for x in range(first):
            tile(b, k, y, x, 1, taps_at(x))
        if first < stop:
            offset = first
            for tiles, size in cuts.split_extent(stop - first, params["tile"]):
                with emit.loop(tiles) as t:
                    tile(b, k, y, offset + t * size, size, list(range(w.kernel[1])))
                offset += tiles * size
        for x in range(stop, columns):
            tile(b, k, y, x, 1, taps_at(x))
