"""What removing channels has done to each layer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from rich.table import Table

from tvm_ext.passes.pruning.channel_step import Channels
from tvm_ext.passes.pruning.prunable import Prunable
from tvm_ext.passes.pruning.report import LayerReport, PruningReport
from tvm_ext.tables import render


@dataclass(frozen=True)
class LayerChannels(LayerReport):
    """One layer before and after.

    The attributes of `LayerReport`, for which what was removed counts as zeros; `bytes` are dense.

    Attributes
    ----------
    filters, inputs : int
        That are left of `shape`'s first two: filters, and inputs of each filter.
    """

    filters: int = 0
    inputs: int = 0


@dataclass(frozen=True)
class ChannelReport(PruningReport):
    """A row for each layer; prints as a table."""

    layers: tuple[LayerChannels, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The layers as plain dictionaries."""
        names = [field.name for field in fields(LayerChannels)]
        return [{name: getattr(layer, name) for name in names} for layer in self.layers]

    def __rich__(self) -> Table:
        return channel_table(self)

    def __str__(self) -> str:
        return render(channel_table(self))


def layer_channels(
    layer: Prunable, channels: Channels, kept: np.ndarray, note: str
) -> LayerChannels:
    """Count what is left of a layer.

    Parameters
    ----------
    layer : Prunable
        As it was.
    channels : Channels
    kept : ndarray of bool
        For each id.
    note : str
        Why its filters stay, if they do.
    """
    mask = _weights_kept(layer, channels, kept)
    filters, inputs = int(mask.any(1).sum()), int(mask.sum(1).max())
    energy = np.square(layer.weights, dtype="float64").reshape(*mask.shape, -1).sum(2)
    density, total = float(mask.mean()), float(energy.sum())
    size = layer.weights.nbytes
    return LayerChannels(
        layer.name, layer.kind, layer.weights.shape, density,
        float(energy[mask].sum()) / total if total else 1.0, layer.macs,
        round(layer.macs * density), size, round(size * density), note, filters, inputs,
    )  # fmt: skip


def channel_table(report: ChannelReport) -> Table:
    """One row a layer, and the total."""
    table = Table(title="channels", title_justify="left")
    for name in ("layer", "kind"):
        table.add_column(name, overflow="fold")
    for name in ("filters", "left", "inputs", "left", "energy", "MMAC", "left", "kB", "left"):
        table.add_column(name, justify="right")
    table.add_column("why filters stay", overflow="fold")
    for x in report.layers:
        before, inputs = x.shape[:2]
        table.add_row(
            x.name, x.kind, str(before), str(x.filters), str(inputs), str(x.inputs),
            f"{x.kept_energy:.3f}", *_sizes([x]), x.note,
        )  # fmt: skip
    table.add_section()
    table.add_row("total", "", "", "", "", "", "", *_sizes(list(report.layers)), "")
    return table


def _sizes(layers: list[LayerChannels]) -> list[str]:
    """Millions of multiply-adds and thousands of bytes, each before and after."""
    macs, left = (sum(getattr(x, name) for x in layers) / 1e6 for name in ("macs_before", "macs"))
    before, after = (sum(getattr(x, n) for x in layers) / 1e3 for n in ("bytes_before", "bytes"))
    return [f"{macs:.2f}", f"{left:.2f}", f"{before:.1f}", f"{after:.1f}"]


def _weights_kept(layer: Prunable, channels: Channels, kept: np.ndarray) -> np.ndarray:
    """(filters, inputs of a filter): which of the weights are left."""
    count, inputs = layer.weights.shape[:2]
    rows = kept[channels.filters[layer.name]]
    read = channels.inputs.get(layer.name)
    groups = int(layer.call.attrs.groups) if layer.kind == "conv" else 1
    columns = np.ones((groups, inputs), bool)
    # The input of a filter of a depthwise convolution goes with the filter.
    if read is not None and not (groups > 1 and inputs == 1):
        columns = kept[read].reshape(groups, inputs)
    return rows[:, None] & np.repeat(columns, count // groups, axis=0)
