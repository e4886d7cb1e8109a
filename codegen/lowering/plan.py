"""What a network becomes on an accelerator: nests with tilings, and where everything lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.lowering.footprint import Residency
from tvm_ext.codegen.lowering.moves import Move, axes
from tvm_ext.codegen.lowering.nest import Nest, Tiling
from tvm_ext.codegen.lowering.nests import nests_of
from tvm_ext.codegen.lowering.places import Buffers
from tvm_ext.codegen.lowering.recipe import Recipe
from tvm_ext.codegen.lowering.views import Placement
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_moves import Reshape


@dataclass(frozen=True)
class NestPlan:
    """One nest, decided.

    Attributes
    ----------
    nest, recipe, residency, tiling, buffers
        What, by which instruction, from and to where, in which parts, in which bytes of SRAM.
    cycles : int
        Alone, by the timing model.
    """

    nest: Nest
    recipe: Recipe
    residency: Residency
    tiling: Tiling
    buffers: Buffers
    cycles: int


@dataclass(frozen=True)
class MovePlan:
    """One move, and the SRAM that it goes through: bytes of a buffer, addresses."""

    move: Move
    chunk: tuple[int, list[int]]


@dataclass(frozen=True)
class NetworkPlan:
    """All of a network, decided.

    Attributes
    ----------
    network : Network
    accelerator : Accelerator
    placement : Placement
        Views and storages of the tensors.
    items : tuple of NestPlan or MovePlan
        In execution order.
    sram : dict of str to int
        Addresses of the storages that stay in SRAM from one layer to the next.
    extra : dict of str to int
        Bytes of further storages in system memory: int32 sums, and tensors in another order.
    serial : bool
        No two units work at the same time.
    """

    network: Network
    accelerator: Accelerator
    placement: Placement
    items: tuple[NestPlan | MovePlan, ...]
    sram: dict[str, int] = field(default_factory=dict)
    extra: dict[str, int] = field(default_factory=dict)
    serial: bool = False


def steps_of(network: Network, placement: Placement, accelerator: Accelerator) -> list[Nest | Move]:
    """The nests and moves of all layers, in order."""
    steps: list[Nest | Move] = []
    for layer in network.layers:
        if not isinstance(layer, Reshape):
            steps += nests_of(network, layer, placement, accelerator)
            continue
        source, target = (placement.views[n].storage for n in (layer.inputs[0], layer.output))
        if source != target:
            shapes = (network.tensors[n].shape for n in (layer.inputs[0], layer.output))
            before, after = map(axes, shapes)
            steps.append(Move(layer, source, target, before, after))
    return steps


def extra_storages(steps: Sequence[Nest | Move]) -> dict[str, int]:
    """Storages that aren't of tensors, with their bytes."""
    extra: dict[str, int] = {}
    for step in steps:
        if isinstance(step, Move):
            extra |= step.extra
        elif step.wide:
            extra[step.output.storage] = step.output.nbytes
    return extra


def too_large(nest: Nest, needed: int, accelerator: Accelerator) -> LoweringError:
    """The error for a nest whose smallest tile doesn't fit."""
    return LoweringError(
        f"layer {nest.name}: the smallest tile needs {needed} bytes of SRAM; allowed: "
        f"{accelerator.sram_bytes}, the sram_bytes of accelerator {accelerator.name}"
    )


def move_too_large(move: Move, slots: int, accelerator: Accelerator) -> LoweringError:
    """The error for a move whose pixels don't fit."""
    return LoweringError(
        f"layer {move.layer.name}: a reshape with {slots} buffers of {move.pixel_bytes} bytes; "
        f"allowed: {accelerator.sram_bytes}, the sram_bytes of accelerator {accelerator.name}"
    )
