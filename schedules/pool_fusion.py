"""Whether a convolution and the pool behind it should be one kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.target import CpuTarget


def fused_pool_pays(workload: ConvWorkload, target: CpuTarget) -> bool:
    """Whether a convolution with a pool stage is estimated to be faster than its two parts.

    The parts are what the fastest algorithms make of the convolution alone and of the pool.
    """
    fused = _fastest(workload, target)
    if fused is None:
        return False
    convolution = _fastest(replace(workload, pool=None), target)
    pool = _fastest(workload.pooling, target)
    return convolution is None or pool is None or fused < convolution + pool


def _fastest(workload: Any, target: CpuTarget) -> float | None:
    """Seconds of the fastest algorithm, or None without one."""
    return min(
        (
            algorithm.cost(workload, algorithm.default(workload, target), target)
            for algorithm in algorithms(workload).values()
            if algorithm.supports(workload, target)
        ),
        default=None,
    )
