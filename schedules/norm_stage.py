"""A norm as one stage of another kernel: the rows of a task go from one place to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.base import Support, refuse
from tvm_ext.schedules.normalize import Normalize
from tvm_ext.schedules.normalize_rows import RowLoops, normalizer
from tvm_ext.schedules.workload import NormalizeWorkload, Shape
from tvm_ext.target import CpuTarget

# Of a row and a column of the task: the element before.
Read = Callable[[Any, Any], tirx.Expr]
# Of a row and a column of the task, and the element after; called in a vectorised loop.
Write = Callable[[Any, Any, tirx.Expr], None]

# Vectors of accumulators in a reduction.
_VECTORS = 4
# Share of the FMA peak that the passes over a row in cache reach.
_EFFICIENCY = 0.35


def takes_rows(w: NormalizeWorkload, shape: Shape, target: CpuTarget) -> Support:
    """Whether a norm is one of the rows of a tensor of this shape."""
    rows = prod(shape[:-1])
    if (w.rows, w.columns, w.out_shape[-1]) != (rows, shape[-1], shape[-1]):
        return refuse(
            f"a norm of {w.columns} columns in {w.out_shape}; only one of the rows of {shape}"
        )
    return Normalize().supports(w, target)


def declare_weights(w: NormalizeWorkload) -> list[Any]:
    """Declare the arguments gamma and beta; None in the place of what a norm doesn't have."""
    named = (("gamma", w.scale), ("beta", w.shift))
    return [emit.argument(name, (w.columns,)) if given else None for name, given in named]


def normalize_rows(
    w: NormalizeWorkload, lanes: int, rows: int, weights: Sequence[Any], read: Read, write: Write
) -> None:
    """Normalise some rows.

    Parameters
    ----------
    rows
        Of the task.
    weights
        From `declare_weights`.
    read, write
        They must not share memory: where a row isn't made up of whole vectors, the last one
        overlaps its neighbour, and is computed from what was read.
    """
    n, (gamma, beta) = w.columns, weights
    loops = RowLoops(n, lanes, _VECTORS)
    powers = emit.workspace((n,)) if w.kind == "softmax" else None

    def keep(x: Any, power: tirx.Expr) -> None:
        T.buffer_store(powers, power, [x])

    with emit.loop(rows) as i:
        normal = normalizer(w, loops, lambda x: read(i, x), None if powers is None else keep)

        def store(start: Any, count: int) -> None:
            with emit.loop(count, "vectorized") as lane:
                x = start + lane
                value = normal(read(i, x) if powers is None else powers[x])
                value = value if gamma is None else value * gamma[x]
                write(i, x, value if beta is None else value + beta[x])

        emit.cover(n, lanes, store)


def norm_seconds(w: NormalizeWorkload, target: CpuTarget) -> float:
    """Seconds in which one core normalises all rows, which are in its cache."""
    own = replace(w, producer=None).flops + w.epilogue.flops * w.rows * w.columns
    return own / (_EFFICIENCY * target.fma_peak)
