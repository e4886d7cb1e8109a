"""What the host can do: FMA throughput and memory bandwidth of one core, measured with TVM code."""

from __future__ import annotations

import numpy as np
import tvm
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.target import CpuTarget

_STEPS = 20_000
_REPEATS = 15


def measure_fma_peak(target: CpuTarget) -> float:
    """Floating-point operations a second of one core: the best of independent FMA chains."""
    lanes, chains = target.lanes, 12

    def body() -> None:
        a = emit.argument("a", (2 * lanes,))
        out = emit.argument("out", (chains, lanes))
        tile = emit.RegisterTile(chains, 1, lanes)
        tile.zero()
        with T.serial(0, _STEPS):
            tile.fill(lambda r, c, i: tile.get(r, c, i) * a[i] + a[lanes + i])
        tile.each(lambda r, c, i: T.buffer_store(out, tile.get(r, c, i), [r, i]))

    a = np.concatenate([np.full(lanes, 0.5), np.full(lanes, 0.25)]).astype("float32")
    seconds = _best_time(target, body, [a, np.zeros((chains, lanes), "float32")])
    return 2 * _STEPS * chains * lanes / seconds


def measure_memory_bandwidth(target: CpuTarget) -> float:
    """Bytes a second that one core reads in order from an array twice the last-level cache."""
    lanes, chains = target.lanes, 8
    rows = max(2 * target.l3, 64 << 20) // (4 * lanes * chains)

    def body() -> None:
        a = emit.argument("a", (rows, chains, lanes))
        out = emit.argument("out", (chains, lanes))
        tile = emit.RegisterTile(chains, 1, lanes)
        tile.zero()
        with T.serial(0, rows) as row:
            tile.fill(lambda r, c, i: tile.get(r, c, i) + a[row, r, i])
        tile.each(lambda r, c, i: T.buffer_store(out, tile.get(r, c, i), [r, i]))

    data = np.ones((rows, chains, lanes), "float32")
    seconds = _best_time(target, body, [data, np.zeros((chains, lanes), "float32")], repeats=8)
    return data.nbytes / seconds


def _best_time(
    target: CpuTarget, body: object, arrays: list[np.ndarray], repeats: int = _REPEATS
) -> float:
    func = emit.build(body)  # type: ignore[arg-type]
    module = tvm.compile(tvm.IRModule({"main": func}), target=target.tvm).mod
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    timer = module.time_evaluator("main", tvm.cpu(), number=1, repeat=repeats)
    return float(timer(*tensors).min)
