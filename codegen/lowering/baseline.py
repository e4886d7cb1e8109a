"""The flow of "Evaluating deep learning compilers for embedded devices" (section 4), to compare
with: ``mapping="baseline"``.

Every layer's input and result are in system memory, convolutions are cut along output channels
alone, sums go to system memory as int32 and come back for requantisation, and no two units work at
the same time (its parts are the CONV, DEPTH and REQUANT subgraphs of figure 4). As many channels
are taken as fit, in whole multiples of the lanes where they are more than that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import nest as kinds
from tvm_ext.codegen.lowering.choose import assign
from tvm_ext.codegen.lowering.footprint import Residency, footprint
from tvm_ext.codegen.lowering.moves import Move
from tvm_ext.codegen.lowering.nest import Nest, Tiling
from tvm_ext.codegen.lowering.nests import with_round_trip
from tvm_ext.codegen.lowering.plan import (
    MovePlan,
    NestPlan,
    NetworkPlan,
    extra_storages,
    move_too_large,
    steps_of,
    too_large,
)
from tvm_ext.codegen.lowering.recipe import recipe_of
from tvm_ext.codegen.lowering.sram import pack
from tvm_ext.codegen.lowering.views import place_tensors
from tvm_ext.codegen.network import Network


def plan_baseline(network: Network, accelerator: Accelerator) -> NetworkPlan:
    """Decide as the paper's flow does.

    Raises
    ------
    LoweringError
        One output channel of a layer doesn't fit the SRAM, or the accelerator can't run a layer.
    """
    placement, gaps = place_tensors(network), ((0, accelerator.sram_bytes),)
    steps: list[Nest | Move] = []
    for step in steps_of(network, placement, accelerator):
        steps += [step] if isinstance(step, Move) else with_round_trip(step)
    items: list[NestPlan | MovePlan] = []
    for step in steps:
        if isinstance(step, Nest):
            items.append(_nest_plan(network, step, accelerator))
        elif (chunk := step.chunk(gaps, 1)) is not None:
            items.append(MovePlan(step, chunk))
        else:
            raise move_too_large(step, 1, accelerator)
    return NetworkPlan(
        network, accelerator, placement, tuple(items), {}, extra_storages(steps), serial=True
    )


def _nest_plan(network: Network, nest: Nest, accelerator: Accelerator) -> NestPlan:
    residency = Residency((False,) * len(nest.inputs))
    tiling = _tiling(nest, residency, accelerator)
    sizes = footprint(nest, tiling, residency)
    addresses = pack(sizes.sizes, ((0, accelerator.sram_bytes),))
    if addresses is None:
        raise too_large(nest, sizes.nbytes, accelerator)
    recipe = recipe_of(nest, network.tensors)
    return NestPlan(nest, recipe, residency, tiling, assign(sizes, addresses), 0)


def _tiling(nest: Nest, residency: Residency, accelerator: Accelerator) -> Tiling:
    """The largest tile that fits: of channels, or of rows where values don't depend on others."""
    height, width, filters = nest.output.shape
    whole = Tiling(height, width, filters, nest.depth)

    def fits(tiling: Tiling) -> bool:
        return footprint(nest, tiling, residency).nbytes <= accelerator.sram_bytes

    if nest.operation in (kinds.ELEMENTWISE, kinds.SHIFT):
        return _largest(lambda rows: replace(whole, rows=rows), height, fits)
    made = _largest(lambda channels: replace(whole, channels=channels), filters, fits)
    if accelerator.lanes < made.channels < filters:
        made = replace(made, channels=made.channels // accelerator.lanes * accelerator.lanes)
    return made


def _largest(make: Callable[[int], Tiling], total: int, fits: Callable[[Tiling], bool]) -> Tiling:
    """The tiling of the largest size up to `total` that fits, or that of size one."""
    low, high = 1, total
    while low < high:
        middle = (low + high + 1) // 2
        if fits(make(middle)):
            low = middle
        else:
            high = middle - 1
    return make(low)
