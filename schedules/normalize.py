"""Softmax, log-softmax, layer norm and RMS norm: each row stays in L1 between its passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules import scalar_functions as sf
from tvm_ext.schedules import scalar_math as sm
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.workload import NormalizeWorkload
from tvm_ext.target import CpuTarget

_KINDS = ("softmax", "log_softmax", "layer_norm", "rms_norm")
_VECTORS = (1, 2, 4, 8)
_TASKS = 8
# What a core computes in about the time that a parallel loop takes to start.
_PARALLEL_FLOPS = 150_000

Term = Callable[[Any], tirx.Expr]
Combine = Callable[[tirx.Expr, tirx.Expr], tirx.Expr]


@register
class Normalize(Algorithm[NormalizeWorkload]):
    """Reductions of a row in vectors, then one pass that writes it.

    Parameters of the plan: `vectors` of accumulators in a reduction; `rows` in a task; `parallel`,
    whether threads share the tasks.
    """

    name: ClassVar[str] = "normalize"
    workload_type: ClassVar[type] = NormalizeWorkload

    def supports(self, workload: NormalizeWorkload, target: CpuTarget) -> Support:
        w = workload
        if w.kind not in _KINDS:
            return refuse(f"kind {w.kind!r}; only {', '.join(_KINDS)}")
        if w.dtype != "float32":
            return refuse(f"dtype {w.dtype}; only float32")
        if w.rows * w.columns == 0:
            return refuse(f"{w.rows} rows of {w.columns} columns have no elements")
        return YES

    def space(self, workload: NormalizeWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {
            "vectors": _VECTORS,
            "rows": tuple(range(1, workload.rows + 1)),
            "parallel": (False, True),
        }

    def default(self, workload: NormalizeWorkload, target: CpuTarget) -> dict[str, Any]:
        w = workload
        parallel = w.flops > _PARALLEL_FLOPS and target.cores > 1 and w.rows > 1
        tasks = min(w.rows, _TASKS * target.cores) if parallel else 1
        return {"vectors": 4, "rows": -(-w.rows // tasks), "parallel": parallel}

    def cost(self, workload: NormalizeWorkload, params: Params, target: CpuTarget) -> float:
        w = workload
        cores = min(target.cores, -(-w.rows // params["rows"])) if params["parallel"] else 1
        compute = (w.flops + w.epilogue.flops * w.rows * w.columns) / (0.35 * target.fma_peak)
        memory = w.bytes / target.bandwidth(cores)
        return max(compute / cores, memory) + costs.FORK_SECONDS * params["parallel"]

    def kernel(
        self,
        workload: NormalizeWorkload,
        params: Params,
        target: CpuTarget,
        layout: tuple[int, int],
    ) -> tirx.PrimFunc:
        return emit.build(lambda: _emit(workload, params, target.lanes))


def _emit(w: NormalizeWorkload, params: Params, v: int) -> None:
    """Declare the arguments and emit the loops over rows."""
    n, count = w.columns, params["rows"]
    data = emit.argument("data", w.out_shape)
    gamma = emit.argument("gamma", (n,)) if w.scale else None
    beta = emit.argument("beta", (n,)) if w.shift else None
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", w.out_shape)
    data, out = emit.view(data, (w.rows, n)), emit.view(out, (w.rows, n))
    last = w.out_shape[-1]
    finish = rowwise_epilogue(w.epilogue, operands, w.out_shape)
    softmax = w.kind == "softmax"
    with emit.tasks(params["parallel"], -(-w.rows // count)) as (task,):
        first = cuts.panel_start(task, count, w.rows)
        powers = emit.workspace((n,)) if softmax else None
        with emit.loop(count) as i:
            row = first + i
            normal = _statistics(w, params, v, lambda x: data[row, x], powers)

            def store(start: Any, lanes: int) -> None:
                with emit.loop(lanes, "vectorized") as lane:
                    x = start + lane
                    value = normal(powers[x] if softmax else data[row, x])
                    value = value * gamma[x] if gamma is not None else value
                    value = value + beta[x] if beta is not None else value
                    # Rows of several trailing dimensions are more than one row of the output.
                    at = (row, x) if last == n else ((row * n + x) // last, (row * n + x) % last)
                    T.buffer_store(out, finish(*at, value), [row, x])

            emit.cover(n, v, store)


def _statistics(
    w: NormalizeWorkload, params: Params, v: int, load: Term, powers: Any
) -> Callable[[tirx.Expr], tirx.Expr]:
    """Reduce the row; returns what turns an element (for softmax its power) into the result."""

    def reduce(combine: Combine, identity: float, term: Term, keep: Any = None) -> tirx.Expr:
        return _reduce(w.columns, v, params["vectors"], combine, identity, term, keep)

    def add(a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
        return a + b

    def const(x: float) -> tirx.Expr:
        return tirx.const(x, "float32")

    if "softmax" in w.kind:
        # A NaN may be dropped here, since its power brings it back.
        top = reduce(lambda total, x: tirx.Select(x > total, x, total), float("-inf"), load)
        total = reduce(add, 0.0, lambda x: sm.exp(load(x) - top), powers)
        if w.kind == "softmax":
            inverse = emit.hold(const(1.0) / total)
            return lambda x: x * inverse
        logarithm = emit.hold(sf.log(total))
        return lambda x: x - top - logarithm
    share = const(1.0 / w.columns)
    if w.kind == "rms_norm":
        mean = const(0.0)
        squares = reduce(add, 0.0, lambda x: load(x) * load(x))
    else:
        # Two passes: the squares of the differences don't cancel as E[x^2] - E[x]^2 would.
        mean = emit.hold(reduce(add, 0.0, load) * share)
        squares = reduce(add, 0.0, lambda x: (load(x) - mean) * (load(x) - mean))
    scale = emit.hold(const(1.0) / tirx.sqrt(squares * share + const(w.epsilon)))
    return lambda x: (x - mean) * scale


def _reduce(
    n: int, v: int, vectors: int, combine: Combine, identity: float, term: Term, keep: Any
) -> tirx.Expr:
    """Reduce term(x) over [0, n) with vectors of accumulators; also writes terms to `keep`."""
    lanes = min(v, 1 << (n.bit_length() - 1))
    vectors = min(vectors, n // lanes)
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
                T.buffer_store(keep, fresh[lane], [start + lane])
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
