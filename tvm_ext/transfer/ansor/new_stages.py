"""Steps that make a stage of their own: caches, and reductions in two stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.s_tir import Schedule
from tvm.tirx import IterVar

from tvm_ext.transfer.ansor.loops import apply_changes
from tvm_ext.transfer.ansor.stage import Iterator, Stage


def is_reduction(variable: IterVar) -> bool:
    """Whether a block's iterator is reduced over."""
    return bool(int(variable.iter_type) == IterVar.CommReduce)


def fresh_stage(schedule: Schedule, label: str, block: Any) -> Stage:
    """A stage of a block that stands at the root, with the block's own loops."""
    node = schedule.get(block)
    loops = [schedule.get(loop) for loop in schedule.get_loops(block)]
    # A block without loops still has an iterator, of one step.
    variables = node.iter_vars if loops else ()
    axes = [
        Iterator(str(loop.loop_var.name), is_reduction(variable), int(loop.extent))
        for loop, variable in zip(loops, variables, strict=True)
    ]
    return Stage.fresh(label, str(node.name_hint), axes)


def cache_write(schedule: Schedule, stage: Stage, scope: str) -> tuple[Stage, Stage]:
    """The stage that computes into `scope`, and the one that copies.

    TensorIR keeps the name of the block that computes and gives the copy a new one; Ansor counts
    the computing stage first.
    """
    block = schedule.get_sblock(stage.block)
    copy = schedule.cache_write(block, 0, scope)
    return (
        fresh_stage(schedule, f"{stage.label}.{scope}", block),
        fresh_stage(schedule, stage.label, copy),
    )


def cache_read(schedule: Schedule, stage: Stage, readers: Sequence[Stage], scope: str) -> Stage:
    """The stage that copies what `readers` read of this one to `scope`.

    Raises
    ------
    ValueError
        A reader doesn't read the stage.
    """
    buffer = stage.block
    if not stage.placeholder:
        writes = schedule.get(schedule.get_sblock(stage.block)).writes
        buffer = str(writes[0].source.name)
    blocks = [schedule.get_sblock(reader.block) for reader in readers]
    names = [str(region.source.name) for region in schedule.get(blocks[0]).reads]
    if buffer not in names:
        raise ValueError(f"{readers[0].label} doesn't read {stage.label}")
    copy = schedule.cache_read(blocks[0], names.index(buffer), scope, consumer_blocks=blocks)
    return fresh_stage(schedule, f"{stage.label}.{scope}", copy)


def rfactor(schedule: Schedule, stage: Stage, number: int) -> tuple[Stage, Stage]:
    """The stage with iterator `number` as its last spatial axis, and the one that reduces it.

    Both get Ansor's order of axes. TensorIR puts the new axis first in the block that computes,
    and the reduction first in the other, whatever the order of their loops.
    """
    block = schedule.get_sblock(stage.block)
    loops = apply_changes(schedule, stage, schedule.get_loops(block)).loops
    spatial = sum(not axis.reduction for axis in stage.axes)
    factored = schedule.rfactor(loops[stage.iterators[number]], spatial)

    own = schedule.get_loops(factored)
    rest = [i for i in range(spatial, len(own)) if i != number]
    schedule.reorder(*[own[i] for i in (*range(spatial), number, *rest)])
    variables = len(schedule.get(factored).iter_vars)
    order = [*range(1, spatial + 1), 0, *range(spatial + 1, variables)]
    schedule.reorder_block_iter_var(factored, order)

    final = schedule.get_sblock(stage.block)
    kinds = [is_reduction(variable) for variable in schedule.get(final).iter_vars]
    schedule.reorder_block_iter_var(final, sorted(range(len(kinds)), key=kinds.__getitem__))
    return (
        fresh_stage(schedule, f"{stage.label}.rf", factored),
        fresh_stage(schedule, f"{stage.label}.repl", final),
    )
