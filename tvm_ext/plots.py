"""A profile as pictures, with matplotlib's object interface: no display, no global state."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tvm_ext.plan import Plan
from tvm_ext.profiler import LayerTime, Profile

_MOST_BARS = 40
_DPI = 110


def colours(algorithms: Sequence[str]) -> dict[str, tuple[float, float, float, float]]:
    """A colour for each algorithm, in order of first appearance."""
    palette = colormaps["tab10" if len(set(algorithms)) <= 10 else "tab20"]
    return {name: palette(i) for i, name in enumerate(dict.fromkeys(algorithms))}


def layer_times(profile: Profile) -> Figure:
    """A bar a layer in execution order, coloured by algorithm; the longest when there are many."""
    longest = sorted(profile.rows, key=lambda row: -row.ms)[:_MOST_BARS]
    rows = [row for row in profile.rows if row in longest]
    palette = _palette(profile, rows)
    figure, axes = new_figure(9, 1.3 + 0.2 * len(rows))
    places = np.arange(len(rows))
    axes.barh(places, [r.ms for r in rows], color=[palette[r.algorithm] for r in rows], height=0.75)
    axes.set_yticks(places, [r.name for r in rows], fontsize=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("ms")
    shown = "" if len(rows) == len(profile.rows) else f", the {len(rows)} longest"
    axes.set_title(f"time by layer{shown}", loc="left")
    axes.grid(axis="x", alpha=0.3)
    legend(axes, palette)
    return figure


def roofline(profile: Profile, plan: Plan, peak: float, bandwidth: float) -> Figure:
    """GFLOP/s against arithmetic intensity, under the machine's roof.

    Parameters
    ----------
    peak : float
        Floating-point operations a second of all threads.
    bandwidth : float
        Bytes a second from beyond the caches, of all threads.
    """
    layers = {layer.name: layer for layer in plan}
    rows = [
        row
        for row in profile.rows
        if row.name in layers and row.gflops > 0 and layers[row.name].megabytes > 0
    ]
    figure, axes = new_figure(9, 4.6)
    palette = _palette(profile, rows)
    intensity = [1e3 * layers[row.name].gflop / layers[row.name].megabytes for row in rows]
    axes.scatter(
        intensity, [r.gflops for r in rows], s=[20 + 300 * r.ms / profile.total_ms for r in rows],
        c=[palette[r.algorithm] for r in rows], alpha=0.75, edgecolors="white", linewidths=0.5,
    )  # fmt: skip
    span = np.geomspace(min([*intensity, 0.1]) / 2, max([*intensity, 100.0]) * 2, 200)
    axes.plot(span, np.minimum(peak, bandwidth * span) / 1e9, color="black", linewidth=1)
    axes.annotate(
        f"{peak / 1e9:.0f} GFLOP/s peak", (span[-1], peak / 1e9), xytext=(-4, 4),
        textcoords="offset points", ha="right", fontsize=8,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("FLOP per byte that must move at least")
    axes.set_ylabel("GFLOP/s")
    axes.set_title("throughput by layer; area: time; line: what memory and FMA allow", loc="left")
    axes.grid(alpha=0.3)
    legend(axes, palette)
    return figure


def estimates(profile: Profile) -> Figure:
    """Measured against estimated time of each layer."""
    rows = [row for row in profile.rows if row.estimate_ms > 0 and row.ms > 0]
    figure, axes = new_figure(9, 4.6)
    palette = _palette(profile, rows)
    x, y = [row.estimate_ms for row in rows], [row.ms for row in rows]
    axes.scatter(
        x, y, c=[palette[r.algorithm] for r in rows], s=36, alpha=0.75, edgecolors="white",
        linewidths=0.5,
    )  # fmt: skip
    ends = [min([*x, *y], default=1e-3) / 1.5, max([*x, *y], default=1.0) * 1.5]
    axes.plot(ends, ends, color="black", linewidth=1)
    axes.fill_between(
        ends, [e / 2 for e in ends], [e * 2 for e in ends], color="black", alpha=0.06, linewidth=0
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("estimate, ms")
    axes.set_ylabel("measured, ms")
    axes.set_title("cost model; band: within a factor of two", loc="left")
    axes.grid(alpha=0.3)
    legend(axes, palette)
    return figure


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's contents."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def png_uri(figure: Figure) -> str:
    """The figure as a ``data:`` URI."""
    return "data:image/png;base64," + base64.b64encode(png(figure)).decode()


def _palette(
    profile: Profile, rows: Sequence[LayerTime]
) -> dict[str, tuple[float, float, float, float]]:
    """Colours of the algorithms in `rows`, the same in every plot of a profile."""
    shown = {row.algorithm for row in rows}
    everything = colours([row.algorithm for row in profile.rows])
    return {name: colour for name, colour in everything.items() if name in shown}


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of so many inches, and its only axes."""
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def legend(axes: Axes, palette: Mapping[str, Any]) -> None:
    """A legend of names and their colours at the right of the axes."""
    handles = [Patch(color=colour, label=name) for name, colour in palette.items()]
    if handles:
        axes.legend(
            handles=handles, fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1)
        )
