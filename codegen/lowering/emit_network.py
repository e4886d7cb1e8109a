"""A plan's program, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping

from tvm_ext.codegen.isa import instruction
from tvm_ext.codegen.lowering.constants import ConstantBlock, Parameters
from tvm_ext.codegen.lowering.emit import NestEmitter
from tvm_ext.codegen.lowering.places import Addresses
from tvm_ext.codegen.lowering.plan import MovePlan, NestPlan, NetworkPlan
from tvm_ext.codegen.lowering.sram import aligned
from tvm_ext.codegen.lowering.stream import Stream
from tvm_ext.codegen.lowering.timing import stream_cycles
from tvm_ext.codegen.lowering.tokens import edges_of, with_tokens
from tvm_ext.codegen.lowering.views import image_shape
from tvm_ext.codegen.network_layers import Conv, MatMul
from tvm_ext.codegen.program import Buffer, Layer, Program


def planned_cycles(plan: NetworkPlan) -> int:
    """Cycles of the whole network by the planner's own timing model."""
    stream, _, _, _ = _stream(plan)
    return stream_cycles(stream.steps, edges_of(stream.steps, plan.serial))


def emit_plan(plan: NetworkPlan) -> Program:
    """The program of a plan."""
    stream, constants, memory, layers = _stream(plan)
    steps = stream.steps
    instructions = with_tokens(steps, edges_of(steps, plan.serial))
    return Program(
        variant=plan.accelerator.variant,
        instructions=(*instructions, instruction("OP_END")),
        memory_bytes=memory.end,
        constants=constants.to_bytes(),
        buffers=_buffers(plan, memory.addresses),
        layers=tuple(layers),
        tags=(*(step.tag for step in steps), -1),
    )


class _Memory:
    """System memory behind the constants: the storages that a plan reads or writes there."""

    def __init__(self, plan: NetworkPlan, begin: int) -> None:
        names = [plan.placement.views[name].storage for name in plan.network.inputs]
        for item in plan.items:
            if isinstance(item, MovePlan):
                names += [item.move.source, item.move.target, *item.move.extra]
                continue
            residents = zip(item.nest.inputs, item.residency.inputs, strict=True)
            names += [view.storage for view, resident in residents if not resident]
            names += [item.nest.output.storage] if item.residency.is_stored else []
        self.addresses: dict[str, int] = {}
        self.end = begin
        for name in dict.fromkeys(names):
            self.addresses[name] = self.end
            nbytes = plan.extra.get(name) or plan.placement.storages[name]
            self.end += aligned(nbytes)


def _stream(plan: NetworkPlan) -> tuple[Stream, ConstantBlock, _Memory, list[Layer]]:
    constants, parameters = ConstantBlock(), dict[str, Parameters]()
    blobs: list[dict[tuple[int, int], int]] = []
    for item in plan.items:
        blobs.append({})
        if isinstance(item, NestPlan) and item.nest.has_parameters:
            layer = item.nest.layer
            if layer.name not in parameters:
                assert isinstance(layer, (Conv, MatMul))
                order = plan.placement.permuted.get(layer.inputs[0])
                parameters[layer.name] = Parameters(plan.network, layer, order)
            blobs[-1] = constants.add_nest(item.nest, item.tiling, parameters[layer.name])
    memory = _Memory(plan, constants.nbytes)
    addresses = Addresses(plan.sram, memory.addresses)
    stream, layers = Stream(plan.accelerator), list[Layer]()
    for tag, (item, blob) in enumerate(zip(plan.items, blobs, strict=True)):
        if isinstance(item, MovePlan):
            layers.append(Layer(item.move.layer.name, "MOVE"))
            item.move.emit(stream, memory.addresses, item.chunk, tag)
            continue
        layers.append(Layer(item.nest.name, item.nest.kind))
        NestEmitter(
            item.nest, item.tiling, item.residency, item.buffers, addresses, item.recipe,
            blob, stream, tag,
        ).emit()  # fmt: skip
    return stream, constants, memory, layers


def _buffers(plan: NetworkPlan, addresses: Mapping[str, int]) -> tuple[Buffer, ...]:
    network, views = plan.network, plan.placement.views
    buffers, outside = [], set()
    for role, names in (("input", network.inputs), ("output", network.outputs)):
        for name in dict.fromkeys(names):
            outside.add(views[name].storage)
            shape = network.tensors[name].shape
            dense = image_shape(shape) if len(shape) == 4 else shape
            buffers.append(Buffer(name, role, addresses[views[name].storage], dense, "int8"))
    for name in addresses:
        if name in outside:
            continue
        shape = (plan.extra[name],) if name in plan.extra else views[name].shape
        buffers.append(Buffer(name, "spill", addresses[name], shape, "int8"))
    return tuple(buffers)
