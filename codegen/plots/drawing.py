"""What the plots of the accelerator share: colours of kinds of layers, units."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib import colormaps
from matplotlib.axes import Axes

from tvm_ext.plots import legend

_KINDS = ("CONV", "DEPTH", "REQUANT", "MATMUL", "POOL", "ELEMENTWISE", "MOVE", "OTHER")
_OTHERS = "#444444"
Colour = tuple[float, float, float, float] | str


def kind_colour(kind: str) -> Colour:
    """The colour of a kind of layers, the same in every plot."""
    return colormaps["tab10"](_KINDS.index(kind)) if kind in _KINDS else _OTHERS


def in_order(kinds: Iterable[str]) -> list[str]:
    """Each kind once, in the order of all plots; unknown ones last."""
    found = dict.fromkeys(kinds)
    return [k for k in _KINDS if k in found] + [k for k in found if k not in _KINDS]


def kind_legend(axes: Axes, kinds: Iterable[str]) -> None:
    """A legend of kinds at the right of the axes."""
    legend(axes, {kind: kind_colour(kind) for kind in in_order(kinds)})


def cycle_unit(cycles: float) -> tuple[float, str]:
    """A factor and a name with which numbers up to `cycles` are short."""
    if cycles >= 1e6:
        return 1e-6, "million cycles"
    return (1e-3, "thousand cycles") if cycles >= 1e3 else (1.0, "cycles")
