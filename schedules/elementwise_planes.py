"""Chains of scalar operations that read maps in channel blocks and store planes.

A task turns some rows of a block of each map into planes, in scratch that stays in the L1 cache,
and computes the chain from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm, prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import cuts, emit
from tvm_ext.schedules.block_transpose import Side, block_to_planes, each_block
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.layout import operand_shape
from tvm_ext.schedules.workload import ElementwiseWorkload
from tvm_ext.target import CpuTarget


def is_map(operand: Operand) -> bool:
    """Whether an operand has channels at more than one position: such a one comes in blocks."""
    return operand.shape[1] != 1 and prod(operand.shape[2:]) != 1


def turns_maps(w: ElementwiseWorkload) -> bool:
    """Whether a chain reads maps of its own (N, C, H, W), repeated elements included."""
    operands = w.epilogue.operands
    if len(w.shape) != 4 or any(o.view is not None for o in operands):
        return False
    maps = [o for o in operands if is_map(o)]
    floats = all(dtype == "float32" for dtype in (w.dtype, *(o.dtype for o in operands)))
    return bool(maps) and floats and all(o.seen[1:] == w.shape[1:] for o in maps)


def emit_turned(w: ElementwiseWorkload, parallel: bool, target: CpuTarget) -> None:
    """Declare the arguments and emit the tasks: rows of a channel block."""
    v, (batch, channels, height, width) = target.lanes, w.shape
    operands, blocks, rows = w.epilogue.operands, -(-channels // v), _rows(w, target)
    arguments = [
        emit.argument(f"x{j}", operand_shape(o.shape, v) if is_map(o) else o.shape, o.dtype)
        for j, o in enumerate(operands)
    ]
    out = emit.argument("out", w.shape)
    maps = {j: o for j, o in enumerate(operands) if is_map(o)}
    flat = {
        j: emit.view(arguments[j], (o.shape[0], blocks, prod(o.shape[2:]), v))
        for j, o in maps.items()
    }
    with emit.tasks(parallel, batch, blocks, height // rows) as (n, block, task):
        first = task * rows
        planes = {j: emit.workspace((v, _positions(o, rows))) for j, o in maps.items()}

        def some_rows(k: Any, live: int) -> None:
            for j, o in maps.items():
                start = first // o.factors[2] * o.shape[3]
                sample = 0 if o.shape[0] == 1 else n
                block_to_planes(
                    Side(flat[j], lambda i, p, j=j, s=start, n=sample: [n, k, s + p, i]),
                    Side(planes[j], lambda i, p: [i, p]),
                    _positions(o, rows), v, live,
                )  # fmt: skip
            with emit.loop(live) as channel, emit.loop(rows) as y:
                at = [n, k * v + channel, first + y]
                read = {
                    j: (planes[j], [channel, y // o.factors[2] * o.shape[3]], o.factors[3])
                    for j, o in maps.items()
                }

                def vector(x: Any, count: int) -> None:
                    _vector(w, arguments, read, out, at, x, count)

                emit.cover(width, v, vector)

        each_block(blocks, channels % v, v, block, some_rows)


def _positions(operand: Operand, rows: int) -> int:
    """What a task reads of a map, for so many rows of the output."""
    return rows // operand.factors[2] * operand.shape[3]


def _rows(w: ElementwiseWorkload, target: CpuTarget) -> int:
    """Rows of a task: as many as fit half the L1 cache, and whole elements of every map."""
    maps = [o for o in w.epilogue.operands if is_map(o)]
    whole = lcm(*(o.factors[2] for o in maps))
    legal = [n for n in cuts.divisors(w.shape[2]) if n % whole == 0]
    room = target.l1d // 2 // (4 * target.lanes)
    return max((n for n in legal if sum(_positions(o, n) for o in maps) <= room), default=legal[0])


def _vector(
    w: ElementwiseWorkload, arguments: list[Any], read: Mapping[int, tuple[Any, list[Any], int]],
    out: Any, row: list[Any], x: Any, count: int,
) -> None:  # fmt: skip
    """`count` neighbouring elements of the output from column `x` of a row."""
    repeated = {}
    for j, (planes, (channel, start), factor) in read.items():
        if factor > 1:
            repeated[j] = T.alloc_buffer((count,), "float32", scope="global")
            with emit.loop(count, "unroll") as lane:
                value = planes[channel, start + (x + lane) // factor]
                T.buffer_store(repeated[j], value, [lane])
    with emit.loop(count, "vectorized") as lane:

        def load(j: int) -> tirx.Expr:
            if j in repeated:
                return repeated[j][lane]
            if j in read:
                planes, (channel, start), _ = read[j]
                return planes[channel, start + x + lane]
            return arguments[j][tuple(w.epilogue.operands[j].place([*row, x + lane]))]

        T.buffer_store(out, w.epilogue.evaluate([], load), [*row, x + lane])
