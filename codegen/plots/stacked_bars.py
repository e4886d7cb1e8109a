"""Cycles of the points of a sweep, stacked by kind of layer: the form of the paper's figure 4."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.plots.drawing import cycle_unit, in_order, kind_colour, kind_legend
from tvm_ext.codegen.sweep.row import Failure, Point, Row
from tvm_ext.plots import new_figure

if TYPE_CHECKING:
    from tvm_ext.codegen.sweep.result import Sweep

_IN_LABEL = ("sram_bytes", "pes", "parallel", "depthwise")
_INCHES = 0.8
"""Width of a bar with its label."""


def stacked_bars(sweep: Sweep) -> Figure:
    """A bar a point, its segments the cycles of CONV, DEPTH, REQUANT, ... layers.

    Labels are those of figure 4 (Sponner, Waschneck, Kumar, "Compiler Toolchains for Deep Learning
    Workloads on Embedded Platforms"): memory, PEs, I or O for input- or output-parallel; other
    options that aren't the same everywhere follow. Points with the same mapping and the same
    support for depthwise layers stand together, under its name if there are several. A point that
    failed has the error's name in place of a bar.
    """
    groups = _groups(sweep)
    points = [point for group in groups.values() for point in group]
    figure, axes = new_figure(2.2 + max(3.5, _INCHES * len(points)), 4.2)
    most = max((row.cycles for row in sweep.rows), default=0)
    scale, unit = cycle_unit(most)
    for place, point in enumerate(points):
        if isinstance(point, Row):
            _draw_row(axes, place, point, scale)
        else:
            axes.text(place, 0, f" {point.error}", rotation=90, ha="center", va="bottom",
                      fontsize=8, color="#888888", parse_math=False)  # fmt: skip
    varied = _varied(sweep)
    axes.set_xticks(range(len(points)), [_label(point, varied) for point in points], fontsize=8)
    axes.set_xlim(-0.6, len(points) - 0.4)
    axes.set_ylim(0, 1.12 * scale * most or 1)
    axes.set_ylabel(unit)
    lines = _draw_groups(axes, groups)
    axes.set_title("cycles by kind of layer", loc="left", fontsize=10, pad=6 + 12 * lines)
    kind_legend(axes, sweep.kinds)
    return figure


def _groups(sweep: Sweep) -> dict[tuple[str, str], list[Point]]:
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in sweep.points:
        groups.setdefault((point.mapping, point.accelerator.depthwise), []).append(point)
    return groups


def _draw_row(axes: Axes, place: int, row: Row, scale: float) -> None:
    height = 0.0
    for kind in in_order(row.cycles_by_kind):
        cycles = scale * row.cycles_by_kind[kind]
        axes.bar(place, cycles, bottom=height, width=0.7, color=kind_colour(kind))
        height += cycles
    total = f"{height:,.0f}" if height >= 100 else f"{height:.3g}"
    axes.text(place, height, total, ha="center", va="bottom", fontsize=8)


def _draw_groups(axes: Axes, groups: dict[tuple[str, str], list[Point]]) -> int:
    """Names of the groups above their bars if they differ, and lines between them.

    Returns the number of the names' lines.
    """
    mappings = {mapping for mapping, _ in groups}
    kinds = {depthwise for _, depthwise in groups}
    start, most = 0, 0
    for (mapping, depthwise), points in groups.items():
        names = [mapping] * (len(mappings) > 1) + ["depthwise", depthwise] * (len(kinds) > 1)
        most = max(most, len(names))
        if names:
            axes.annotate(
                "\n".join(names), (start + (len(points) - 1) / 2, 1), ha="center", va="bottom",
                xycoords=("data", "axes fraction"), fontsize=8,
            )  # fmt: skip
        if start:
            axes.axvline(start - 0.5, color="#bbbbbb", linewidth=0.8, linestyle=":")
        start += len(points)
    return most


def _varied(sweep: Sweep) -> list[str]:
    """Options that aren't in the usual label and aren't the same everywhere."""
    names = [field.name for field in fields(Accelerator) if field.name not in _IN_LABEL]
    return [n for n in names if len({getattr(p.accelerator, n) for p in sweep.points}) > 1]


def _label(point: Row | Failure, varied: list[str]) -> str:
    size, rest = point.label.split(" ", 2)[:2], point.label.split(" ", 2)[2]
    others = [f"{name}\n{getattr(point.accelerator, name)}" for name in varied]
    return "\n".join([" ".join(size), rest, *others])
