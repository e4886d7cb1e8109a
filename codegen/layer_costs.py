"""What each layer of a run cost: cycles, products, bytes over the bus."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_ext.codegen.program import Layer
from tvm_ext.codegen.simulator.result import UNTAGGED, Result


@dataclass(frozen=True)
class LayerCost:
    """A layer's share of one run.

    Attributes
    ----------
    name, kind : str
        The layer, and which of figure 4's groups it belongs to: CONV, DEPTH, REQUANT, ...
    cycles : int
        Its share of the run's cycles (`Result.cycles_by_layer`): all shares add up to the run's.
    macs : int
        Its products.
    utilization : float
        Products per PE and cycle of its share, 0 to 1.
    memory_bytes : int
        Bytes that its instructions moved to or from system memory.
    """

    name: str
    kind: str
    cycles: int
    macs: int
    utilization: float
    memory_bytes: int


def layer_costs(result: Result) -> tuple[LayerCost, ...]:
    """The layers of a run in the program's order; work without a layer is the last, if any."""
    cycles, macs = result.cycles_by_layer(), result.macs_by_layer()
    moved = _memory_bytes(result)
    costs = []
    for layer in dict.fromkeys((*result.program.layers, UNTAGGED)):
        share, products = cycles.get(layer, 0), macs.get(layer, 0)
        if layer == UNTAGGED and not share and not moved.get(layer):
            continue
        pe_cycles = result.accelerator.pes * share
        costs.append(
            LayerCost(
                layer.name, layer.kind, share, products, products / pe_cycles if share else 0.0,
                moved.get(layer, 0),
            )
        )  # fmt: skip
    return tuple(costs)


def _memory_bytes(result: Result) -> dict[Layer, int]:
    program, moved = result.program, dict[Layer, int]()
    events = result.events
    for pc, nbytes in zip(events.pc.tolist(), events.memory_bytes.tolist(), strict=True):
        if nbytes:
            layer = program.layers[program.tags[pc]] if program.tags[pc] >= 0 else UNTAGGED
            moved[layer] = moved.get(layer, 0) + nbytes
    return moved
