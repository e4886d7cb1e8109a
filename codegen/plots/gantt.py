"""When each unit of the accelerator works on which layer."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tvm_ext.codegen.isa import Unit
from tvm_ext.codegen.plots.drawing import cycle_unit, kind_colour, kind_legend
from tvm_ext.codegen.simulator.result import UNTAGGED, Result
from tvm_ext.errors import OptionError
from tvm_ext.plots import new_figure

_RESOLUTION = 2000
"""Gaps below this part of the picture can't be seen: what they part is drawn as one bar."""

_CHARACTERS = 190
"""So many characters of a layer's name would fill the picture's width."""

_BAND = ("#e4e4e4", "#c9c9c9")


@dataclass
class _Bar:
    start: int
    end: int
    name: str


def gantt(result: Result, first: int = 0, last: int | None = None) -> Figure:
    """A lane a unit, over cycles; bars have the colour of the kind of their layer.

    Gaps are cycles in which a unit waits. The band on top has the layers by the compute unit. The
    busy shares are those of the whole run.

    Parameters
    ----------
    result : Result
        Of `simulate`.
    first, last : int
        Only these cycles, `last` not included; by default all.

    Raises
    ------
    OptionError
        There is no cycle from `first` to `last`.
    """
    stop = result.cycles if last is None else min(last, result.cycles)
    if not 0 <= first < stop:
        raise OptionError(
            f"cycles {first} to {last}; allowed: a part of 0 to {result.cycles}, the whole run"
        )
    figure, axes = new_figure(10, 2.7)
    scale, unit_name = cycle_unit(stop)
    gap = (stop - first) // _RESOLUTION
    kinds: set[str] = set()
    for unit in Unit:
        bars = _bars(result, unit, first, stop, gap, by_kind=True)
        kinds |= {bar.name for bar in bars}
        axes.broken_barh(
            [(scale * bar.start, scale * (bar.end - bar.start)) for bar in bars],
            (unit - 0.4, 0.8),
            facecolors=[kind_colour(bar.name) for bar in bars],
        )
    _draw_layers(axes, _bars(result, Unit.COMPUTE, first, stop, stop, by_kind=False), scale,
                 stop - first)  # fmt: skip
    busy = {unit: cycles["busy"] / result.cycles for unit, cycles in result.unit_cycles().items()}
    axes.set_yticks(
        [-0.85, *Unit], ["layer", *(f"{unit.label}, busy {busy[unit]:.0%}" for unit in Unit)],
        fontsize=8,
    )  # fmt: skip
    axes.set_ylim(len(Unit) - 0.4, -1.2)
    axes.set_xlim(scale * first, scale * stop)
    axes.set_xlabel(unit_name)
    axes.tick_params(left=False)
    axes.set_title(
        f"{result.cycles:,} cycles on {result.accelerator.name}, utilization "
        f"{result.utilization:.1%}", loc="left", fontsize=10,
    )  # fmt: skip
    kind_legend(axes, kinds)
    return figure


def _bars(
    result: Result, unit: Unit, first: int, stop: int, gap: int, *, by_kind: bool
) -> list[_Bar]:
    """What a unit did, work of the same kind or layer joined where no more than `gap` parts it."""
    events, program = result.events, result.program
    chosen = (events.unit == unit) & (events.end > first) & (events.start < stop)
    chosen &= events.end > events.start
    bars: list[_Bar] = []
    columns = (events.pc[chosen], events.start[chosen], events.end[chosen])
    for pc, start, end in zip(*(column.tolist() for column in columns), strict=True):
        layer = program.layers[program.tags[pc]] if program.tags[pc] >= 0 else UNTAGGED
        name = layer.kind if by_kind else layer.name
        begin, end = max(start, first), min(end, stop)
        if bars and bars[-1].name == name and begin - bars[-1].end <= gap:
            bars[-1].end = end
        else:
            bars.append(_Bar(begin, end, name))
    return bars


def _draw_layers(axes: Axes, bars: list[_Bar], scale: float, cycles: int) -> None:
    for number, bar in enumerate(bars):
        width = bar.end - bar.start
        axes.broken_barh(
            [(scale * bar.start, scale * width)], (-1.05, 0.4), facecolor=_BAND[number % 2]
        )
        if len(bar.name) * cycles <= _CHARACTERS * width:
            axes.text(
                scale * (bar.start + width / 2), -0.85, bar.name, fontsize=6, ha="center",
                va="center", parse_math=False,
            )  # fmt: skip
