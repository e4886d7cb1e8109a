"""What the cost models of sparse products share: cycles and memory traffic in seconds."""

from __future__ import annotations

from tvm_ext.schedules import costs
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.target import CpuTarget

# Floating-point operations a cycle and lane: two multiply-adds.
_OPERATIONS = 4
# What reading from the L2 cache takes of the time that reading from memory would.
_CACHED = 0.1


def in_seconds(cycles: float, target: CpuTarget) -> float:
    """Seconds that one core takes for so many cycles."""
    return cycles * _OPERATIONS * target.lanes / target.fma_peak


def traffic(w: MatmulWorkload, nbytes: float, target: CpuTarget) -> float:
    """Seconds to fetch `nbytes` bytes of stored weights and the rest, as dense products count it.

    Where the dense weights could stay in cache, reading less of them counts for little: a recurrent
    layer takes the same ones in each step.
    """
    if w.weight_bytes <= costs.L2_SHARE * target.l2 * target.cores:
        nbytes += (1 - _CACHED) * (w.weight_bytes - nbytes)
    return 0.5 * (w.bytes - w.weight_bytes + nbytes) / target.memory_bandwidth
