"""What changing layouts costs while a plan grows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tvm_ext.layer_layouts import interchangeable, layer_blocks
from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df
from tvm_ext.plan import LayerPlan
from tvm_ext.target import CpuTarget

# Seconds that starting a kernel costs, whatever it computes.
CALL_SECONDS = 1e-6


@dataclass
class Values:
    """The layouts in which each value of the model is at hand while planning proceeds."""

    blocks: dict[Any, set[int]] = field(default_factory=dict)

    def at_hand(self, var: Any, block: int) -> bool:
        """Whether a value can be read in a layout without a copy."""
        blocks = self.blocks.get(var, {0})
        return block in blocks or any(interchangeable(df.shape_of(var), b, block) for b in blocks)

    def add(self, var: Any, block: int) -> None:
        """A value is in this layout too."""
        self.blocks.setdefault(var, {0}).add(block)


def conversion_seconds(
    wanted: Iterable[tuple[Any, int]], target: CpuTarget, values: Values
) -> float:
    """Seconds to make (value, block) pairs that aren't at hand."""
    return sum(
        copy_seconds(df.shape_of(var), target)
        for var, block in wanted
        if not values.at_hand(var, block)
    )


def copy_seconds(shape: tuple[int, ...], target: CpuTarget) -> float:
    """Seconds to copy a tensor into another layout."""
    return 3 * CALL_SECONDS + 8 * prod(shape) / target.memory_bandwidth


def plain_seconds(layer: Layer, entry: LayerPlan, target: CpuTarget) -> float:
    """Seconds for the conversions around a layer that leaves its planned layouts for the model's.

    What a producer or a reader would do in the model's own layout, too, isn't foreseen.
    """
    blocks = layer_blocks(layer, entry)
    return sum(
        copy_seconds(df.shape_of(var), target)
        for var, block in [*((x, blocks[0]) for x in layer.inputs), (layer.output, blocks[1])]
        if block and not interchangeable(df.shape_of(var), block, 0)
    )
