"""What the cost models of schedules share: threads, copies, memory traffic behind arithmetic."""

from __future__ import annotations

from tvm_ext.target import CpuTarget

# A parallel loop takes so long to start and to join its threads.
FORK_SECONDS = 5e-6
# What a core copies in about that time.
_FORK_BYTES = 256 << 10
# Share of the shorter of two times that isn't hidden behind the longer.
_EXPOSED = 0.3
# Share of the L2 cache that one task's input may take; the rest is for weights and output.
L2_SHARE = 0.5


def busy_cores(tasks: int, target: CpuTarget) -> float:
    """Cores at work on average when `tasks` equal tasks are shared out."""
    return tasks / -(-tasks // target.cores)


def fork(cores: int) -> float:
    """Seconds that it costs to share work among `cores`."""
    return FORK_SECONDS if cores > 1 else 0.0


def copies_in_parallel(nbytes: int, target: CpuTarget) -> bool:
    """Whether a copy that moves so many bytes is worth the threads."""
    return nbytes > _FORK_BYTES and target.cores > 1


def copy_cost(nbytes: int, parallel: bool, target: CpuTarget) -> float:
    """Seconds of a kernel that only moves `nbytes` bytes."""
    cores = target.cores if parallel else 1
    return nbytes / target.bandwidth(cores) + fork(cores)


def overflow(nbytes: float, passes: int, target: CpuTarget) -> float:
    """Seconds in which what overflows the L2 cache comes from the shared one in each pass."""
    return max(0.0, nbytes - L2_SHARE * target.l2) * passes / target.shared_bandwidth


def overlapped(compute: float, stream: float) -> float:
    """Seconds of arithmetic and of memory traffic that hide one another in part."""
    return max(compute, stream) + _EXPOSED * min(compute, stream)
