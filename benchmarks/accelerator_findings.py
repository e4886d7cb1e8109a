"""What the paper found about tiling and parallel modes, looked for in our points.

"Compiler Toolchains for Deep Learning Workloads on Embedded Platforms" (Sponner et al., 2021),
section 5 and figure 4, on MobileNetV1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from benchmarks.accelerator_points import KIB, MIB, Point, Setup

Points = Mapping[Setup, Point]


@dataclass(frozen=True)
class Finding:
    """A claim, whether it holds, and the numbers."""

    claim: str
    holds: bool
    numbers: str


def findings(points: Points, mapping: str) -> list[Finding]:
    """All findings under one mapping."""
    base = Setup("mobilenet_v1", mapping)
    return [rule(points, base) for rule in _RULES]


def _millions(*cycles: int) -> str:
    return " against ".join(f"{value / 1e6:.1f} M" for value in cycles)


def _untiled(points: Points, base: Setup) -> Finding:
    output = points[replace(base, sram_bytes=256 * MIB)].cycles
    other = points[replace(base, sram_bytes=256 * MIB, parallel="input")].cycles
    return Finding(
        "untiled (256 MiB), output-parallel takes fewer cycles than input-parallel",
        output < other, _millions(output, other),
    )  # fmt: skip


def _tiled(points: Points, base: Setup) -> Finding:
    output = points[base].cycles
    other = points[replace(base, parallel="input")].cycles
    return Finding(
        "at 512 KiB, input-parallel takes fewer cycles than output-parallel",
        other < output, _millions(other, output),
    )  # fmt: skip


def _software(points: Points, base: Setup) -> Finding:
    depth = [points[replace(base, depthwise=d)].kinds["DEPTH"] for d in ("software", "hardware")]
    total = [points[replace(base, depthwise=d)].cycles for d in ("software", "hardware")]
    return Finding(
        "software depthwise takes several (3 or more) times the cycles of hardware depthwise",
        depth[0] >= 3 * depth[1],
        f"{_millions(*depth)} in these layers, {_millions(*total)} in all",
    )


def _more_pes(points: Points, base: Setup) -> Finding:
    wide = points[replace(base, pes=128, sram_bytes=MIB)].cycles
    roomy = points[replace(base, pes=64, sram_bytes=256 * MIB)].cycles
    return Finding(
        "128 PEs with 1 MiB take fewer cycles than 64 PEs with 256 MiB",
        wide < roomy, _millions(wide, roomy),
    )  # fmt: skip


def _memory(points: Points, base: Setup) -> Finding:
    small, middle, large = (
        points[replace(base, sram_bytes=size)].cycles for size in (512 * KIB, MIB, 256 * MIB)
    )
    first, second = small / middle, middle / large
    return Finding(
        "cycles do not fall linearly with memory",
        first < 1.9 or second < 200,
        f"2x the memory: {first:.2f}x fewer cycles; 256x more: {second:.2f}x fewer",
    )


_RULES: tuple[Callable[[Points, Setup], Finding], ...] = (
    _untiled, _tiled, _software, _more_pes, _memory,
)  # fmt: skip
