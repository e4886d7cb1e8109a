"""What changing layouts costs while a plan grows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tvm_ext.layer_layouts import layer_blocks, reads, reads_as
from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.read_through import unread_views
from tvm_ext.target import CpuTarget

# Seconds that starting a kernel costs, whatever it computes.
CALL_SECONDS = 1e-6


@dataclass
class Values:
    """The layouts in which each value of the model is at hand while planning proceeds.

    What no layer has made is in the model's own layout, or with `inputs_in_any` in every one.
    """

    blocks: dict[Any, set[int]] = field(default_factory=dict)
    inputs_in_any: bool = False

    def at_hand(self, var: Any, block: int) -> bool:
        """Whether a value can be read in a layout without a copy."""
        if self.inputs_in_any and var not in self.blocks:
            return True
        blocks = self.blocks.get(var, {0})
        return any(reads_as(df.shape_of(var), stored, block) for stored in blocks)

    def share(self, view: Any, source: Any) -> None:
        """A view has the layouts of the value behind it, those to come included."""
        if self.inputs_in_any and source not in self.blocks:
            return
        self.blocks[view] = self.blocks.setdefault(source, {0})

    def add(self, var: Any, block: int) -> None:
        """A value is in this layout too."""
        if self.inputs_in_any and var not in self.blocks:
            return
        self.blocks.setdefault(var, {0}).add(block)

    def record(self, layer: Layer, entry: LayerPlan) -> None:
        """A planned layer has made its result, and conversions what it reads."""
        for var, block in reads(layer, entry):
            self.add(var, block)
        self.blocks.setdefault(layer.output, set()).add(layer_blocks(layer, entry)[1])


def conversion_seconds(
    wanted: Iterable[tuple[Any, int]], target: CpuTarget, values: Values
) -> float:
    """Seconds to make (value, block) pairs that aren't at hand."""
    return sum(
        copy_seconds(df.shape_of(var), target)
        for var, block in wanted
        if not values.at_hand(var, block)
    )


def conversions_between(layers: list[Layer], plan: Plan, target: CpuTarget) -> float:
    """Seconds of the conversions between a part's layers; its inputs are in any layout."""
    values, unread = Values(inputs_in_any=True), unread_views(layers)
    seconds = 0.0
    for layer, entry in zip(layers, plan, strict=True):
        if layer.output in unread:
            values.share(layer.output, layer.inputs[0])
            continue
        seconds += conversion_seconds(reads(layer, entry), target, values)
        values.record(layer, entry)
    return seconds


def copy_seconds(shape: tuple[int, ...], target: CpuTarget) -> float:
    """Seconds to copy a tensor into another layout."""
    return 3 * CALL_SECONDS + 8 * prod(shape) / target.memory_bandwidth


def plain_seconds(layer: Layer, entry: LayerPlan, target: CpuTarget) -> float:
    """Seconds for the conversions around a layer that leaves its planned layouts for the model's.

    What a producer or a reader would do in the model's own layout, too, isn't foreseen.
    """
    blocks = layer_blocks(layer, entry)
    moves = [(x, blocks[0], 0) for x in layer.inputs] + [(layer.output, 0, blocks[1])]
    return sum(
        copy_seconds(df.shape_of(var), target)
        for var, stored, wanted in moves
        if not reads_as(df.shape_of(var), stored, wanted)
    )
