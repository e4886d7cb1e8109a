"""Softmax, log-softmax, layer norm and RMS norm: each row stays in L1 between its passes."""

from __future__ import annotations

from typing import Any, ClassVar

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, cuts, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, refuse, register
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.normalize_rows import RowLoops, normalizer
from tvm_ext.schedules.workload import NormalizeWorkload
from tvm_ext.target import CpuTarget

_KINDS = ("softmax", "log_softmax", "layer_norm", "rms_norm")
_VECTORS = (1, 2, 4, 8)
_TASKS = 8
# What a core computes in about the time that a parallel loop takes to start.
_PARALLEL_FLOPS = 150_000


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
    softmax, loops = w.kind == "softmax", RowLoops(n, v, params["vectors"])
    with emit.tasks(params["parallel"], -(-w.rows // count)) as (task,):
        first = cuts.panel_start(task, count, w.rows)
        powers = emit.workspace((n,)) if softmax else None
        with emit.loop(count) as i:
            row = first + i

            def keep(x: Any, power: tirx.Expr) -> None:
                T.buffer_store(powers, power, [x])

            normal = normalizer(w, loops, lambda x: data[row, x], keep if softmax else None)

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
