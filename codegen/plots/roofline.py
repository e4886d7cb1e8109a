"""What each layer reaches of what PEs and bus allow."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from tvm_ext.codegen.layer_costs import layer_costs
from tvm_ext.codegen.plots.drawing import kind_colour, kind_legend
from tvm_ext.codegen.simulator import Result
from tvm_ext.plots import new_figure


def roofline(result: Result) -> Figure:
    """Products a cycle against products per byte over the bus, a point a layer with products.

    A layer's bytes are those that its instructions moved, so a layer whose activations stay in SRAM
    is further right. A point may be a little above the slope: its weights were loaded in cycles of
    the layer before.

    Parameters
    ----------
    result : Result
        Of `simulate`.
    """
    hardware = result.accelerator
    costs = [c for c in layer_costs(result) if c.macs and c.memory_bytes and c.cycles]
    figure, axes = new_figure(9, 4.4)
    intensity = [cost.macs / cost.memory_bytes for cost in costs]
    reached = [cost.macs / cost.cycles for cost in costs]
    axes.scatter(
        intensity, reached, s=[20 + 600 * cost.cycles / result.cycles for cost in costs],
        c=[kind_colour(cost.kind) for cost in costs], alpha=0.75, edgecolors="white",
        linewidths=0.5,
    )  # fmt: skip
    ridge = hardware.pes / hardware.dma_bytes_per_cycle
    span = np.geomspace(min([*intensity, ridge]) / 3, max([*intensity, ridge]) * 3, 200)
    roof = np.minimum(hardware.pes, hardware.dma_bytes_per_cycle * span)
    axes.plot(span, roof, color="black", linewidth=1)
    axes.annotate(
        f"{hardware.pes} PEs", (span[-1], hardware.pes), xytext=(-4, 4),
        textcoords="offset points", ha="right", fontsize=8,
    )  # fmt: skip
    axes.annotate(
        f"{hardware.dma_bytes_per_cycle} bytes a cycle", (span[0], roof[0]), xytext=(12, 2),
        textcoords="offset points", fontsize=8,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set_ylim(min([*reached, roof[0]]) / 1.5, hardware.pes * 1.6)
    axes.set_xlabel("products per byte over the bus")
    axes.set_ylabel("products a cycle")
    axes.set_title("layers; area: cycles; line: what PEs and bus allow", loc="left", fontsize=10)
    axes.grid(alpha=0.3)
    kind_legend(axes, [cost.kind for cost in costs])
    return figure
