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


def piece_counts(most: int, target: CpuTarget) -> list[int]:
    """Into how many pieces, up to `most`, work may be cut: none of it shared, or one a core."""
    return sorted({1, min(target.cores, most)})


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


def overflow(nbytes: float, passes: float, target: CpuTarget) -> float:
    """Seconds in which what overflows the L2 cache comes from the shared one in each pass."""
    return max(0.0, nbytes - L2_SHARE * target.l2) * passes / target.shared_bandwidth


def refill(nbytes: float, target: CpuTarget) -> float:
    """Seconds in which a core's L1 cache takes so much from L2: three vectors in four cycles."""
    return nbytes / (0.75 * target.fma_peak)


def reread(nbytes: float, passes: int, target: CpuTarget) -> float:
    """Seconds in which the part of weights that overflows the L2 cache comes back in each pass."""
    level = target.shared_bandwidth if nbytes < target.l3 else target.memory_bandwidth
    return max(0.0, nbytes - L2_SHARE * target.l2) * passes / level


def beyond(nbytes: float, least: float, most: float) -> float:
    """How much of so many bytes doesn't come from a cache: 0 up to `least`, 1 from `most` on."""
    return min(1.0, max(0.0, (nbytes - least) / (most - least)))


def shared_out(work: float, jobs: int, nbytes: float, target: CpuTarget) -> float:
    """Seconds of equal jobs, `work` for one core, that the cores share, beside memory traffic."""
    busiest = work * -(-jobs // target.cores) / jobs
    return overlapped(busiest, 0.7 * nbytes / target.memory_bandwidth)


def overlapped(compute: float, stream: float) -> float:
    """Seconds of arithmetic and of memory traffic that hide one another in part."""
    return max(compute, stream) + _EXPOSED * min(compute, stream)
