"""What a sweep found: a table, a CSV file, the Pareto front, figure 4's bars."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tvm_ext import tables
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.sizes import format_size
from tvm_ext.codegen.sweep.pareto import OBJECTIVES, pareto_front
from tvm_ext.codegen.sweep.row import Failure, Point, Row
from tvm_ext.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_USUAL = ("sram", "pes", "parallel", "depthwise", "mapping")
_COSTS = (
    "cycles", "seconds", "utilization", "macs", "dma_read_bytes", "dma_write_bytes", "energy_pj",
    "subgraphs", "instructions",
)  # fmt: skip


@dataclass(frozen=True)
class Sweep:
    """The points of a sweep in the grid's order.

    Attributes
    ----------
    points : tuple of Row or Failure
    """

    points: tuple[Point, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The points that have costs."""
        return tuple(point for point in self.points if isinstance(point, Row))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The points that have none, with the reason."""
        return tuple(point for point in self.points if isinstance(point, Failure))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of layers that any row has, in order of first appearance."""
        return tuple(dict.fromkeys(kind for row in self.rows for kind in row.cycles_by_kind))

    def pareto(self, objectives: Sequence[str] = OBJECTIVES) -> tuple[Row, ...]:
        """The rows that no other beats: see `pareto_front`."""
        return pareto_front(self.rows, objectives)

    def table(self) -> Table:
        """A line a point: its hardware, its costs, and a star if it is on the Pareto front.

        What is the same for all points is in the title.
        """
        shown, fixed = self._options()
        same = [f"{name} {value}" for name, value in fixed.items()]
        title = f"{len(self.points)} points; * on the front of cycles, SRAM and energy"
        table = Table(title=Text("\n".join(filter(None, (title, ", ".join(same))))),
                      title_justify="left")  # fmt: skip
        for name in shown:
            table.add_column(name)
        costs = ("cycles", "ms", "used PEs", "DMA bytes", "energy, uJ", *self.kinds, "*")
        for name in costs:
            table.add_column(name, justify="right")
        front = self.pareto()
        for point in self.points:
            if isinstance(point, Failure):
                cells = ["failed", *["-"] * (len(costs) - 2), ""]
            else:
                cells = [*self._cost_cells(point), "*" if point in front else ""]
            table.add_row(*map(Text, [*(_settings(point)[name] for name in shown), *cells]))
        if self.failures:
            table.caption = Text("\n".join(map(str, self.failures)))
            table.caption_justify = "left"
        return table

    def __str__(self) -> str:
        return tables.render(self.table())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a line a point: all options of its hardware, its costs, or its failure.

        A failure leaves no partial file.

        Raises
        ------
        ArtifactError
            The file can't be written.
        """
        text = io.StringIO(newline="")
        options = [field.name for field in fields(Accelerator)]
        kinds = [f"cycles_{kind}" for kind in self.kinds]
        writer = csv.DictWriter(
            text, [*options, "mapping", *_COSTS, *kinds, "error", "reason"], restval=""
        )
        writer.writeheader()
        for point in self.points:
            line: dict[str, Any] = {**asdict(point.accelerator), "mapping": point.mapping}
            if isinstance(point, Failure):
                line |= {"error": point.error, "reason": point.reason}
            else:
                line |= {name: getattr(point, name) for name in _COSTS}
                line |= {f"cycles_{k}": point.cycles_by_kind.get(k, 0) for k in self.kinds}
            writer.writerow(line)
        with replacing(Path(path)) as stream:
            stream.write(text.getvalue().encode())

    def plot(self) -> Figure:
        """A bar of cycles a point, stacked by kind of layer: the form of figure 4."""
        from tvm_ext.codegen.plots import stacked_bars

        return stacked_bars(self)

    def _options(self) -> tuple[list[str], dict[str, str]]:
        """The options that aren't the same for all points; the usual ones of those that are."""
        settings = [_settings(point) for point in self.points]
        if not settings:
            return [], {}
        shown = [name for name in settings[0] if len({each[name] for each in settings}) > 1]
        return shown, {n: settings[0][n] for n in _USUAL if n not in shown}

    def _cost_cells(self, row: Row) -> list[str]:
        return [
            f"{row.cycles:,}",
            f"{1e3 * row.seconds:.3f}",
            f"{row.utilization:.1%}",
            f"{row.dma_read_bytes + row.dma_write_bytes:,}",
            f"{1e-6 * row.energy_pj:,.1f}",
            *(f"{row.cycles_by_kind.get(kind, 0):,}" for kind in self.kinds),
        ]


def _settings(point: Point) -> dict[str, str]:
    """A point's options as text: the usual ones first."""
    hardware = asdict(point.accelerator)
    size = format_size(hardware.pop("sram_bytes"))
    values = {"sram": size, **hardware, "mapping": point.mapping}
    return {name: str(values[name]) for name in dict.fromkeys((*_USUAL, *values))}
