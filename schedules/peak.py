"""What the host can do: FMA throughput and memory bandwidth of one core, measured with TVM code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.target import CpuTarget

_STEPS = 20_000
_REPEATS = 15
_MEMORY_REPEATS = 8


@dataclass(frozen=True)
class Probe:
    """A compiled measurement of one core that can be repeated beside others.

    Attributes
    ----------
    module : tvm.runtime.Module
    tensors : list of Tensor
    work : float
        Operations or bytes of one run.
    """

    module: Any
    tensors: list[Any]
    work: float

    def rate(self, repeats: int) -> float:
        """Operations or bytes a second, the best of some runs."""
        timer = self.module.time_evaluator("main", tvm.cpu(), number=1, repeat=repeats)
        return self.work / float(timer(*self.tensors).min)


def measure_fma_peak(target: CpuTarget) -> float:
    """Floating-point operations a second of one core."""
    return fma_probe(target).rate(_REPEATS)


def fma_probe(target: CpuTarget) -> Probe:
    """Independent chains of FMAs on registers."""
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
    arrays = [a, np.zeros((chains, lanes), "float32")]
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    return Probe(_compiled(target, body), tensors, 2.0 * _STEPS * chains * lanes)


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

    def fill() -> None:
        a = emit.argument("a", (rows, chains, lanes))
        with T.serial(0, rows) as row, T.serial(0, chains) as c, T.vectorized(0, lanes) as i:
            T.buffer_store(a, tirx.const(1.0, "float32"), [row, c, i])

    # Filled in place: a copy of an array would be as large as this.
    data = tvm.runtime.empty((rows, chains, lanes), "float32")
    _compiled(target, fill)["main"](data)
    out = tvm.runtime.tensor(np.zeros((chains, lanes), "float32"))
    nbytes = 4.0 * rows * chains * lanes
    return Probe(_compiled(target, body), [data, out], nbytes).rate(_MEMORY_REPEATS)


def _compiled(target: CpuTarget, body: Callable[[], None]) -> Any:
    return tvm.compile(tvm.IRModule({"main": emit.build(body)}), target=target.tvm).mod
