"""How spatial pack is shared out: chunks of the input, pieces of the panels, and what both cost."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from tvm_ext.schedules import costs
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_prologue import prologue_seconds
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.pool_stage import repetition, rows_needed, slices_needed, stage_seconds
from tvm_ext.schedules.producer_rows import producer_seconds
from tvm_ext.schedules.spatial_pack_kernel import chunk_extent
from tvm_ext.schedules.tiles import Tile
from tvm_ext.target import CpuTarget

# Beyond this many chunks nothing gets better.
_MOST_TASKS = 64
_TASK_SECONDS = 2e-7


def must_stage(w: ConvWorkload, g: ConvGeometry) -> bool:
    """Whether the multiply-adds can't read the input in place."""
    return g.must_stage or w.prologue is not None or w.producer is not None


def candidates(
    w: ConvWorkload, tile: Tile, panels: int, target: CpuTarget
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Parameters worth a look for a tile and at least so many panels, with the number of jobs."""
    g, extent = ConvGeometry.of(w), chunk_extent(w, ConvGeometry.of(w))
    unit = tile.rows if g.flat and not g.must_stage else 1
    for tasks in range(1, min(extent, _MOST_TASKS) + 1):
        rows = -(-extent // tasks)
        chunk = min(extent, -(-rows // unit) * unit)
        if -(-extent // chunk) != tasks:
            continue
        for pieces in costs.piece_counts(panels, target):
            yield tasks * pieces, {
                "tile": tile.rows, "blocks": tile.columns, "chunk": chunk, "pieces": pieces,
                "stage": must_stage(w, g),
            }  # fmt: skip


def seconds(
    w: ConvWorkload, params: Params, target: CpuTarget, multiply: float, passes: float,
    weight_bytes: float, lines: float = 0.0,
) -> float:  # fmt: skip
    """Of all tasks on all cores.

    Parameters
    ----------
    w : ConvWorkload
    params : Mapping
        With `chunk`, `pieces` and `stage`.
    target : CpuTarget
    multiply : float
        Seconds of one core for the tiles, without what the rows of a pool stage repeat.
    passes : float
        How often a task reads its input.
    weight_bytes : float
        Of the weights as they are stored.
    lines : float
        How often a task loads the lines of its input that the L1 cache can't hold, where that may
        take longer than to multiply.
    """
    g = ConvGeometry.of(w)
    depth = slices_needed(w)
    slices = 1 if g.flat else prod(g.out[:-2]) // depth
    tasks = -(-chunk_extent(w, g) // params["chunk"]) * w.batch * slices
    if g.flat:
        positions = params["chunk"] * (prod(g.staged[1:]) if g.must_stage else 1)
    else:
        halo = max(0, g.kernel[-2] - g.stride[-2])
        rows = rows_needed(w, params["chunk"]) * g.stride[-2] + halo
        between = (depth - 1) * prod(g.stride[:-2])
        positions = rows * g.staged[-1] * (prod(g.kernel[:-2]) + between)
    input_bytes = 4 * positions * w.in_channels / w.groups
    staging = 0.0
    if params["stage"]:
        staging = max(
            2 * input_bytes / target.shared_bandwidth, prologue_seconds(w, input_bytes, target)
        )
        if w.producer:
            made = producer_seconds(w.producer, target) * positions / prod(w.spatial) / w.batch
            staging = input_bytes / target.shared_bandwidth + made
        staging *= params["pieces"]
    # What a copy is made of passes through the same cache, and pushes out as much as is made of it.
    source = min(1.0, prod(w.source_shape) / prod(w.in_shape)) if params["stage"] else 0.0
    spilled = costs.overflow(input_bytes * (1 + source), passes, target)
    loaded = input_bytes * costs.beyond(input_bytes, 0.75 * target.l1d, 1.5 * target.l1d) * lines
    multiply = costs.overlapped(multiply, costs.refill(loaded * tasks * w.groups, target))
    work = multiply * repetition(w, params["chunk"])
    work += (staging + spilled + _TASK_SECONDS) * tasks * w.groups
    # Weights that overflow the cache come from the next one for each chunk.
    work += costs.reread(weight_bytes, tasks - 1, target) + stage_seconds(w, target)
    jobs = tasks * w.groups * params["pieces"]
    nbytes = w.bytes - w.weight_bytes + min(weight_bytes, w.weight_bytes)
    return costs.shared_out(work, jobs, nbytes, target)
