"""Cycles against energy of the points of a sweep, and which of them no other beats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tvm_ext.codegen.plots.drawing import Colour, cycle_unit
from tvm_ext.codegen.sizes import format_size
from tvm_ext.plots import new_figure

if TYPE_CHECKING:
    from tvm_ext.codegen.sweep.result import Sweep

_MARKERS = {"hardware": "o", "software": "s", "none": "^"}
_SPREAD = 30
"""Axes whose largest value is so many times the smallest are logarithmic."""


def pareto(sweep: Sweep) -> Figure:
    """A point a row: cycles across, energy up, SRAM as colour; rows on the front are labelled.

    The front is that of cycles, SRAM and energy (`pareto_front`), so a row may be on it that is
    beaten in this picture by one with more SRAM.
    """
    front = sweep.pareto()
    figure, axes = new_figure(9, 4.6)
    scale, unit = cycle_unit(max((row.cycles for row in sweep.rows), default=0))
    palette = _palette([row.sram_bytes for row in sweep.rows])
    for row in sweep.rows:
        best = row in front
        axes.scatter(
            scale * row.cycles, 1e-6 * row.energy_pj, s=70 if best else 36,
            color=palette[row.sram_bytes], marker=_MARKERS[row.accelerator.depthwise],
            alpha=1.0 if best else 0.45, edgecolors="black" if best else "none", linewidths=1.0,
            zorder=3 if best else 2,
        )  # fmt: skip
    ranked = sorted(front, key=lambda row: (row.cycles, row.energy_pj))
    for number, row in enumerate(ranked):
        up = number % 2 == 0
        axes.annotate(
            row.label, (scale * row.cycles, 1e-6 * row.energy_pj), xytext=(6, 6 if up else -6),
            textcoords="offset points", va="bottom" if up else "top", fontsize=7,
        )  # fmt: skip
    for name, values in (
        ("x", [row.cycles for row in sweep.rows]), ("y", [row.energy_pj for row in sweep.rows])
    ):  # fmt: skip
        if values and max(values) > _SPREAD * min(values):
            axes.set(**{f"{name}scale": "log"})
    axes.margins(0.12)
    axes.set_xlabel(unit)
    axes.set_ylabel("energy, uJ")
    axes.set_title(
        f"{len(front)} of {len(sweep.rows)} points are on the front of cycles, SRAM and energy",
        loc="left", fontsize=10,
    )  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend(handles=_handles(sweep, palette), fontsize=8, frameon=False, loc="upper left",
                bbox_to_anchor=(1, 1))  # fmt: skip
    return figure


def _palette(sizes: list[int]) -> dict[int, Colour]:
    if not sizes:
        return {}
    scaled = LogNorm(min(sizes), max(max(sizes), 2 * min(sizes)))
    colours = colormaps["viridis_r"]
    return {size: colours(0.1 + 0.8 * float(scaled(size))) for size in sorted(set(sizes))}


def _handles(sweep: Sweep, palette: dict[int, Colour]) -> list[Line2D]:
    sizes = [
        Line2D([], [], color=colour, marker="o", linestyle="", label=f"SRAM {format_size(size)}")
        for size, colour in palette.items()
    ]
    kinds = dict.fromkeys(row.accelerator.depthwise for row in sweep.rows)
    shapes = [
        Line2D([], [], color="#777777", marker=_MARKERS[kind], linestyle="",
               label=f"depthwise {kind}")
        for kind in kinds if len(kinds) > 1
    ]  # fmt: skip
    edge = Line2D([], [], color="white", markeredgecolor="black", marker="o", linestyle="",
                  label="on the front")  # fmt: skip
    return [*sizes, *shapes, edge]
