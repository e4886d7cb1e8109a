"""What an FKW convolution costs: cycles of a kernel, of a filter's outputs, of a task's copy.

The constants are of kernels measured on a Cascade Lake core, with AVX2 and with AVX-512 code.
"""

from __future__ import annotations

from collections import Counter

from tvm_ext.schedules import costs, cuts
from tvm_ext.schedules.emit import STACK_BYTES
from tvm_ext.schedules.fkw_geometry import LINE, FkwGeometry
from tvm_ext.sparsity import Sparsity
from tvm_ext.sparsity.kernel_patterns import Pattern
from tvm_ext.target import CpuTarget

_FMA_PIPES = 2
_FMA_LATENCY = 4
# Loads and instructions a cycle that a core sustains.
_LOADS = 1.8
_ISSUE = 3.6
# Instructions of a kernel that aren't loads or multiply-adds.
_LOOP = 5
# Registers that aren't accumulators: weights of a kernel.
_HELD = 4
# Cycles that a vector takes longer from the L2 cache, and a kernel whose page must be searched.
_L2_CYCLES = 0.42
_PAGE_CYCLES = 1.5
# Bytes of the pages that a core finds without a search.
_REACH = 64 << 12
# Cycles of a pattern's loop beside its kernels.
_RUN_CYCLES = 3.0
# Cycles in which a vector of sums is stored and read, and in which one of outputs is stored.
_SUM_CYCLES = 1.5
_FINISH_CYCLES = 3.0
# Cycles in which a vector is copied, and an element of a strided row.
_COPY_CYCLES = 1.5
_STRIDED_CYCLES = 1.0


def most_rows(shifts: int, target: CpuTarget) -> int:
    """Rows whose accumulators, one for each shift, leave registers for the weights of a kernel.

    Those of one shift are a buffer on the stack.
    """
    stack = (STACK_BYTES - 1) // (4 * target.lanes)
    return max(1, min(stack, (target.registers - _HELD) // max(1, shifts)))


def task_cycles(
    g: FkwGeometry, sparsity: Sparsity, filters: int, rows: int, pieces: int, target: CpuTarget
) -> float:
    """Cycles of all pieces of one task."""
    found = sparsity.patterns
    tiles = cuts.split_extent(g.block_rows, rows)
    kernels = sum(
        count * kept * kernel_cycles(g, pattern, size, target)
        for count, size in tiles
        for pattern, kept in zip(found.taps, found.kernels, strict=True)
    )
    passes = sum(count for count, _ in tiles) * len(found.taps) * _RUN_CYCLES
    copied = g.channels * len(g.parts) * g.rows * g.width
    element = _STRIDED_CYCLES if g.stride[1] > 1 else _COPY_CYCLES * g.fold / target.lanes
    return (
        g.strip * (kernels + filters * passes)
        + filters * _finish_cycles(g, target)
        + pieces * copied * element
    )


def kernel_cycles(g: FkwGeometry, pattern: Pattern, rows: int, target: CpuTarget) -> float:
    """Cycles for one kernel and one tile: the tightest of four limits, and what caches add."""
    taps = [g.taps[tap] for tap in pattern]
    vectors = len({(tap.part, tap.row + r) for tap in taps for r in range(rows)})
    multiply = len(taps) * rows
    core = max(
        multiply / _FMA_PIPES,
        (vectors + len(taps) + 1) / _LOADS,
        (multiply + vectors + len(taps) + _LOOP) / _ISSUE,
        # Those of a shift add to one accumulator.
        _FMA_LATENCY * max(Counter(tap.shift for tap in taps).values()),
    )
    nbytes = 4 * g.size
    behind = _L2_CYCLES * vectors * costs.beyond(nbytes, target.l1d / 2, 4 * target.l1d)
    return core + behind + _PAGE_CYCLES * costs.beyond(nbytes, 0.75 * _REACH, 1.25 * _REACH)


def traffic_seconds(
    g: FkwGeometry, nbytes: int, filters: int, pieces: int, target: CpuTarget
) -> float:
    """Seconds in which the rows of a task come from and go to behind the L2 cache.

    A strip that isn't whole rows starts and ends inside a line.
    """
    ends = 0 if g.whole else 1
    read = -(-g.width * g.stride[1] // LINE) + ends
    written = -(-g.strip_columns // LINE) + ends
    lines = pieces * g.channels * g.rows * g.fold * read + 2 * filters * g.chunk * written
    share = costs.beyond(nbytes, target.l2, 4 * target.l2)
    return share * 4 * LINE * lines / target.shared_bandwidth


def _finish_cycles(g: FkwGeometry, target: CpuTarget) -> float:
    """Cycles to store the sums of one filter, to add them up, and to store the outputs."""
    # As `emit.cover` cuts a row.
    lanes = min(target.lanes, 1 << (g.strip_columns.bit_length() - 1))
    outputs = g.fold * g.block_rows * -(-g.strip_columns // lanes)
    sums = len(g.shifts) * g.block_rows * g.strip
    behind = 2 * _SUM_CYCLES if 4 * sums * target.lanes > target.l1d / 2 else 0.0
    return (_SUM_CYCLES + behind) * sums + outputs * (_FINISH_CYCLES + len(g.shifts))
