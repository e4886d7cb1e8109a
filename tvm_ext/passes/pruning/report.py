"""What pruning has done to each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from tvm_ext.passes.pruning.prunable import Prunable
from tvm_ext.sparsity import summarize
from tvm_ext.tables import render

_INDEX_BYTES = 4


@dataclass(frozen=True)
class LayerReport:
    """One layer before and after.

    Attributes
    ----------
    name, kind : str
        As of the `Prunable`.
    shape : tuple of int
        (filters, inputs of a filter, *kernel).
    density : float
        Share of the weights that aren't zero.
    kept_energy : float
        Share of the sum of squares that is left; 1 if there was none.
    macs_before, macs : int
        Multiply-adds, and what is left of them when zeros are skipped.
    bytes_before, bytes : int
        Of the weights: dense, and as the smallest of dense and panels of 1 to 16 filters that
        share their columns (`ColumnPanels`), indices included.
    note : str
        Why the layer was left alone, if it was.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    density: float
    kept_energy: float
    macs_before: int
    macs: int
    bytes_before: int
    bytes: int
    note: str = ""


@dataclass(frozen=True)
class PruningReport:
    """A row for each layer; prints as a table.

    Attributes
    ----------
    layers : tuple of LayerReport
    """

    layers: tuple[LayerReport, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The layers as plain dictionaries."""
        names = [field.name for field in fields(LayerReport)]
        return [{name: getattr(layer, name) for name in names} for layer in self.layers]

    @property
    def density(self) -> float:
        """Share of the weights of all layers that aren't zero."""
        sizes = [prod(layer.shape) for layer in self.layers]
        kept = sum(x.density * size for x, size in zip(self.layers, sizes, strict=True))
        return kept / sum(sizes)

    @property
    def macs_density(self) -> float:
        """Share of the multiply-adds that is left."""
        return sum(x.macs for x in self.layers) / sum(x.macs_before for x in self.layers)

    def __getitem__(self, name: str) -> LayerReport:
        """The layer of this name; KeyError if there is none."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise KeyError(name)

    def __rich__(self) -> Table:
        return pruning_table(self)

    def __str__(self) -> str:
        return render(pruning_table(self))


def layer_report(layer: Prunable, weights: np.ndarray, note: str = "") -> LayerReport:
    """Compare a layer's weights with those that it gets.

    Parameters
    ----------
    layer : Prunable
        As it was.
    weights : ndarray
        Of the shape of ``layer.weights``.
    note : str
        Why they are the same, if they are.
    """
    before, after = (float(np.sum(np.square(w, dtype="float64"))) for w in (layer.weights, weights))
    density = int(np.count_nonzero(weights)) / weights.size
    return LayerReport(
        layer.name, layer.kind, layer.weights.shape, density, after / before if before else 1.0,
        layer.macs, round(layer.macs * density), layer.weights.nbytes, stored_bytes(weights), note,
    )  # fmt: skip


def stored_bytes(weights: np.ndarray) -> int:
    """Bytes of weights and indices in the smallest of dense storage and `ColumnPanels`."""
    counts = summarize(weights)
    if counts is None:
        return weights.nbytes
    sizes = [
        kept * (lanes * weights.itemsize + _INDEX_BYTES)
        + _INDEX_BYTES * (-(-len(weights) // lanes) + 1)
        for lanes, kept in counts.vectors
    ]
    return min(weights.nbytes, *sizes)


def pruning_table(report: PruningReport) -> Table:
    """One row a layer, and the total."""
    table = Table(title="pruning", title_justify="left")
    for name in ("layer", "kind", "weights"):
        table.add_column(name, overflow="fold")
    for name in ("density", "energy", "MMAC", "left", "kB", "stored kB"):
        table.add_column(name, justify="right")
    table.add_column("left alone", overflow="fold")
    for layer in report.layers:
        table.add_row(
            escape(layer.name), layer.kind, "x".join(map(str, layer.shape)), f"{layer.density:.3f}",
            f"{layer.kept_energy:.3f}", *_sizes([layer]), escape(layer.note),
        )  # fmt: skip
    table.add_section()
    table.add_row(
        "total", "", "", f"{report.density:.3f}", "", *_sizes(report.layers), "",
    )  # fmt: skip
    return table


def _sizes(layers: Sequence[LayerReport]) -> list[str]:
    """The last columns of a table's row."""
    macs, left = (sum(getattr(x, name) for x in layers) / 1e6 for name in ("macs_before", "macs"))
    before, after = (sum(getattr(x, n) for x in layers) / 1e3 for n in ("bytes_before", "bytes"))
    return [f"{macs:.2f}", f"{left:.2f}", f"{before:.1f}", f"{after:.1f}"]
