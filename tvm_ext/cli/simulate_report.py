"""What `tvm-ext simulate` tells of a run: tables of layers and kinds, sums, a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from rich.table import Table
from rich.text import Text

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc import Refusal
from tvm_ext.codegen.isa import Unit
from tvm_ext.codegen.layer_costs import LayerCost, layer_costs
from tvm_ext.codegen.simulator import Result
from tvm_ext.files import replacing


@dataclass(frozen=True)
class Part:
    """One subgraph of a model, and the result of one of its runs."""

    name: str
    runs: int
    result: Result

    @property
    def cycles(self) -> int:
        """Of all runs."""
        return self.runs * self.result.cycles


def layer_table(parts: Sequence[Part]) -> Table:
    """A row a layer; a layer of a model with a batch counts all images."""
    table = _table("by layer", ["subgraph"] * (len(parts) > 1) + ["layer", "kind"], ["DMA bytes"])
    total = sum(part.cycles for part in parts)
    for part, cost in _costs(parts):
        names = [part.name] * (len(parts) > 1) + [cost.name, cost.kind]
        cells = _cells(part.runs * cost.cycles, total, part.runs * cost.macs, cost.utilization)
        table.add_row(*map(Text, [*names, *cells, f"{part.runs * cost.memory_bytes:,}"]))
    return table


def kind_table(parts: Sequence[Part], accelerator: Accelerator) -> Table:
    """A row a kind of layers, and the total."""
    table = _table("by kind", ["kind"], [])
    cycles, macs = dict[str, int](), dict[str, int]()
    for part, cost in _costs(parts):
        cycles[cost.kind] = cycles.get(cost.kind, 0) + part.runs * cost.cycles
        macs[cost.kind] = macs.get(cost.kind, 0) + part.runs * cost.macs
    total = sum(cycles.values())
    for kind, share in sorted(cycles.items(), key=lambda item: -item[1]):
        used = macs[kind] / (accelerator.pes * share) if share else 0.0
        table.add_row(*map(Text, [kind, *_cells(share, total, macs[kind], used)]))
    table.add_section()
    products = sum(macs.values())
    used = products / (accelerator.pes * total) if total else 0.0
    table.add_row(*map(Text, ["total", *_cells(total, total, products, used)]))
    return table


def summary_lines(
    parts: Sequence[Part], accelerator: Accelerator, share: float, refusals: Iterable[Refusal]
) -> Iterator[str]:
    """Time, bytes, energy, how busy the units are, and what is left for the CPU."""
    cycles = sum(part.cycles for part in parts)
    read = sum(part.runs * part.result.dma_read_bytes for part in parts)
    written = sum(part.runs * part.result.dma_write_bytes for part in parts)
    energy = sum(part.runs * part.result.energy_pj for part in parts)
    yield f"accelerator: {accelerator.variant}"
    yield (
        f"cycles: {cycles:,}, {1e3 * cycles / accelerator.clock_hz:.3f} ms at "
        f"{accelerator.clock_hz / 1e6:g} MHz"
    )
    busy = ", ".join(f"{unit.label} {_busy(parts, unit) / cycles:.1%}" for unit in Unit)
    yield f"units busy: {busy}"
    yield f"DMA: {read:,} bytes read, {written:,} written"
    yield f"energy: {1e-6 * energy:.1f} uJ"
    yield (
        f"on the accelerator: {share:.2%} of multiply-accumulates, "
        f"{len(parts)} subgraph{'s' if len(parts) > 1 else ''}"
    )
    yield from (f"on the CPU: {refusal}" for refusal in refusals)


def write_csv(parts: Sequence[Part], path: Path) -> None:
    """A line a layer of each subgraph, for one run of it, and how often it runs.

    Raises
    ------
    ArtifactError
        The file can't be written.
    """
    text = io.StringIO(newline="")
    names = [field.name for field in fields(LayerCost)]
    writer = csv.writer(text)
    writer.writerow(["subgraph", "runs", *names])
    for part, cost in _costs(parts):
        writer.writerow([part.name, part.runs, *(getattr(cost, name) for name in names)])
    with replacing(path) as stream:
        stream.write(text.getvalue().encode())


def _costs(parts: Sequence[Part]) -> Iterator[tuple[Part, LayerCost]]:
    return ((part, cost) for part in parts for cost in layer_costs(part.result))


def _busy(parts: Sequence[Part], unit: Unit) -> int:
    return sum(part.runs * part.result.unit_cycles()[unit]["busy"] for part in parts)


def _table(title: str, names: Sequence[str], more: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in ("cycles", "share", "MACs", "utilization", *more):
        table.add_column(name, justify="right")
    return table


def _cells(cycles: int, total: int, macs: int, utilization: float) -> list[str]:
    share = cycles / total if total else 0.0
    return [f"{cycles:,}", f"{share:.1%}", f"{macs:,}", f"{utilization:.1%}"]
