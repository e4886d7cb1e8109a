"""Reductions of a row and what they turn its elements into: softmax, layer norm, RMS norm.

The rows may lie in any buffer, or be computed as they are read: they are given as functions of the
column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules import scalar_functions as sf
from tvm_ext.schedules import scalar_math as sm
from tvm_ext.schedules.workload import NormalizeWorkload

Term = Callable[[Any], tirx.Expr]
Combine = Callable[[tirx.Expr, tirx.Expr], tirx.Expr]
# Takes a column and its value, in a vectorised loop.
Keep = Callable[[Any, tirx.Expr], None]


@dataclass(frozen=True)
class RowLoops:
    """How a reduction goes through a row.

    Attributes
    ----------
    columns : int
    lanes : int
        Of a vector, at most.
    vectors : int
        Of accumulators, at most.
    """

    columns: int
    lanes: int
    vectors: int


def normalizer(
    w: NormalizeWorkload, loops: RowLoops, load: Term, keep: Keep | None = None
) -> Callable[[tirx.Expr], tirx.Expr]:
    """Reduce a row; returns what turns an element (for softmax its power) into the result.

    Parameters
    ----------
    w
        Says which kind of norm, and its epsilon.
    loops
    load
        The row's element at a column.
    keep
        Of a softmax, stores each column's power.
    """
    if w.kind == "softmax":
        inverse = emit.hold(_const(1.0) / softmax_sum(loops, load, keep)[1])
        return lambda x: x * inverse
    if w.kind == "log_softmax":
        top, total = softmax_sum(loops, load)
        logarithm = emit.hold(sf.log(total))
        return lambda x: x - top - logarithm
    mean, scale = norm_scale(loops, load, w.epsilon, centred=w.kind == "layer_norm")
    return lambda x: (x - mean) * scale


def softmax_sum(loops: RowLoops, load: Term, keep: Keep | None = None) -> tuple[Any, Any]:
    """The largest element of a row, and the sum of the powers exp(element - largest).

    `keep` stores each column's power. It may write over the row only where whole vectors make it
    up, because the last vector overlaps its neighbour otherwise.
    """
    # A NaN may be dropped here, since its power brings it back.
    top = reduce_row(loops, lambda total, x: tirx.Select(x > total, x, total), float("-inf"), load)
    return top, reduce_row(loops, _add, 0.0, lambda x: sm.short_exp(load(x) - top), keep)


def norm_scale(loops: RowLoops, load: Term, epsilon: float, centred: bool) -> tuple[Any, Any]:
    """The mean of a row, or zero unless `centred`, and what the difference is multiplied by."""
    share = _const(1.0 / loops.columns)
    if not centred:
        mean: Any = _const(0.0)
        squares = reduce_row(loops, _add, 0.0, lambda x: load(x) * load(x))
    else:
        # Two passes: the squares of the differences don't cancel as E[x^2] - E[x]^2 would.
        mean = emit.hold(reduce_row(loops, _add, 0.0, load) * share)
        squares = reduce_row(loops, _add, 0.0, lambda x: (load(x) - mean) * (load(x) - mean))
    return mean, emit.hold(_const(1.0) / tirx.sqrt(squares * share + _const(epsilon)))


def _add(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    return a + b


def _const(x: float) -> tirx.Expr:
    return tirx.const(x, "float32")


def reduce_row(
    loops: RowLoops, combine: Combine, identity: float, term: Term, keep: Keep | None = None
) -> tirx.Expr:
    """Reduce term(x) over the columns with vectors of accumulators; also hands terms to `keep`."""
    n = loops.columns
    lanes = min(loops.lanes, 1 << (n.bit_length() - 1))
    vectors = min(loops.vectors, n // lanes)
    width = vectors * lanes
    acc = T.alloc_buffer((width,), "float32", scope="global")
    with emit.loop(vectors, "unroll") as c, emit.loop(lanes, "vectorized") as lane:
        T.buffer_store(acc, tirx.const(identity, "float32"), [c * lanes + lane])

    def add(start: Any, c: Any, skip: int = 0) -> None:
        fresh = T.alloc_buffer((lanes,), "float32", scope="global")
        with emit.loop(lanes, "vectorized") as lane:
            T.buffer_store(fresh, term(start + lane), [lane])
        if keep is not None:
            with emit.loop(lanes, "vectorized") as lane:
                keep(start + lane, fresh[lane])
        with emit.loop(lanes, "vectorized") as lane:
            before = acc[c * lanes + lane]
            total = combine(before, fresh[lane])
            if skip:
                total = tirx.Select(lane < skip, before, total)
            T.buffer_store(acc, total, [c * lanes + lane])

    whole = n // lanes
    with emit.loop(whole // vectors) as i, emit.loop(vectors, "unroll") as c:
        add((i * vectors + c) * lanes, c)
    for c in range(whole % vectors):
        add((whole - whole % vectors + c) * lanes, c)
    if n % lanes:
        # The last vector overlaps its neighbour; what was counted there is skipped.
        add(n - lanes, 0, lanes - n % lanes)
    # Whole vectors first, then halves of the last one in a buffer of its own: LLVM would keep the
    # accumulators in pieces of the smallest size that anything reads them by.
    while vectors > 1:
        half, vectors = vectors // 2, -(-vectors // 2)
        with emit.loop(half, "unroll") as c, emit.loop(lanes, "vectorized") as lane:
            at = c * lanes + lane
            T.buffer_store(acc, combine(acc[at], acc[vectors * lanes + at]), [at])
    rest = T.alloc_buffer((lanes,), "float32", scope="global")
    with emit.loop(lanes, "vectorized") as lane:
        T.buffer_store(rest, acc[lane], [lane])
    while lanes > 1:
        lanes //= 2
        with emit.loop(lanes, "vectorized") as lane:
            T.buffer_store(rest, combine(rest[lane], rest[lanes + lane]), [lane])
    return emit.hold(rest[0])
