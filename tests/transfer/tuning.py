"""A model of two kernel classes, at two sizes, and options under which tuning takes seconds."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from tests.passes.relax_models import array, const, module
from tvm_ext.transfer.tune_measure import MeasureOptions
from tvm_ext.transfer.tune_options import TuningOptions
from tvm_ext.transfer.tune_search import SearchOptions
from tvm_ext.transfer.tune_whole import RoundOptions

OPTIONS = TuningOptions(
    measure=MeasureOptions(run_timeout_s=20.0, repeats=1, least_ms=1.0),
    search=SearchOptions(round_size=2, population=8, generations=1, warmup=100),
    rounds=RoundOptions(rounds=1, round_s=0.001),
)


def network(size: int, filters: int) -> tvm.IRModule:
    """Two convolutions with relu, which are one kernel, and a product."""

    def body(emit: Any, x: Any) -> Any:
        for seed in range(2):
            weight = const(array(seed, filters, filters, 3, 3) / (3 * filters**0.5))
            x = emit(relax.op.nn.relu(emit(relax.op.nn.conv2d(x, weight, padding=1))))
        x = emit(relax.op.reshape(x, (size, -1)))
        return relax.op.matmul(x, const(array(2, size * filters, 10) / size))

    return module({"x": (1, filters, size, size)}, body)
