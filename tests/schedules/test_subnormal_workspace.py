"""Kernels whose working memory holds subnormal numbers from before take no longer for it.

Lanes that a kernel computes but doesn't use may hold anything. Multiplying a subnormal number
costs x86 cores some hundred cycles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import tirx as T

from tests.schedules.kernels import HOST
from tests.schedules.oracles import conv_workload
from tests.schedules.sparse_weights import sparse_weights
from tests.schedules.test_sparse_conv import weight_shape
from tests.sparsity.patterned import patterned
from tvm_ext import threads
from tvm_ext.schedules import emit
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.layout import stored_shape, to_blocked
from tvm_ext.sparsity import Sparsity

# Their maps don't fill vectors.
WORKLOADS = {
    "1x1": conv_workload(64, (13, 13), 50, 1),
    "3x3": conv_workload(40, (7, 7), 40, 3, 1, 1),
    "strided": conv_workload(24, (13, 13), 24, 3, 2, 1),
    "depthwise": conv_workload(32, (13, 13), 32, 3, 1, 1, groups=32),
}
_FLOATS = 1 << 18
# A hundred cycles a multiplication, in a vector of 16: far more than this.
_MOST = 2.0


@pytest.fixture
def one_thread() -> Any:
    """The thread that fills the memory is then the one that computes."""
    threads.use(1)
    yield
    threads.use(threads.default_threads())


def _fill() -> Callable[[float], None]:
    """A function that leaves a number everywhere in the memory that kernels work in."""

    def body() -> None:
        value = emit.argument("value", (1,))
        memory = emit.workspace((_FLOATS,))
        with T.serial(0, _FLOATS) as i:
            T.buffer_store(memory, value[0], [i])
        T.buffer_store(value, memory[_FLOATS - 1], [0])

    function = emit.build(body).with_attr("global_symbol", "main")
    module = tvm.compile(tvm.IRModule({"main": function}), target=HOST.tvm).mod
    return lambda value: module["main"](tvm.runtime.tensor(np.array([value], "float32")))


def _weights(name: str, w: ConvWorkload) -> np.ndarray:
    if name == "fkw":
        return patterned(weight_shape(w))
    return sparse_weights(weight_shape(w), 1.0 if algorithms()[name].storage == "dense" else 0.4)


def _timer(name: str, w: ConvWorkload) -> Callable[[], float]:
    """Seconds of one run of the algorithm's kernel."""
    algorithm, weights = algorithms()[name], _weights(name, w)
    params, layout = algorithm.default(w, HOST), algorithm.layouts(w, HOST)[-1]
    function = algorithm.kernel(w, params, HOST, layout).with_attr("global_symbol", "main")
    module = tvm.compile(tvm.IRModule({"main": function}), target=HOST.tvm).mod
    data = to_blocked(np.ones(w.in_shape, "float32"), layout[0])
    out = np.zeros(stored_shape(w.out_shape, layout[1]), "float32")
    arrays = [data, *algorithm.pack(w, params, HOST, [weights]), out]
    tensors = [tvm.runtime.tensor(np.ascontiguousarray(array)) for array in arrays]
    evaluate = module.time_evaluator("main", tvm.cpu(), number=1, repeat=1)
    return lambda: float(evaluate(*tensors).mean)


def _sparse(name: str, w: ConvWorkload) -> ConvWorkload:
    dense = algorithms()[name].storage == "dense"
    return w if dense else replace(w, sparsity=Sparsity.of(_weights(name, w)))


NAMES = [
    name
    for name, a in algorithms().items()
    if a.workload_type is ConvWorkload and () in a.producers
]


@pytest.mark.parametrize("name", NAMES)
def test_subnormal_numbers_left_in_memory_cost_nothing(name: str, one_thread: None) -> None:
    fill = _fill()
    for key, dense in WORKLOADS.items():
        w = _sparse(name, dense)
        if not algorithms()[name].supports(w, HOST):
            continue
        run, times = _timer(name, w), {}
        for value in 8 * (1.0, 1e-40):
            fill(value)
            times.setdefault(value, []).append(min(run() for _ in range(3)))
        assert min(times[1e-40]) < _MOST * min(times[1.0]), key
