"""Channels through reshapes, transpositions and broadcasts; the middle of a channel shuffle."""

from __future__ import annotations

from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import permutation
from tvm_ext.passes.pruning.channel_labels import Axis, Labels, permuted, reshaped
from tvm_ext.passes.pruning.channel_rule import Rule
from tvm_ext.passes.pruning.channel_shrink import Shrink, take
from tvm_ext.passes.pruning.channel_step import Step


def _follow_reshape(step: Step) -> Labels:
    old, new = step.shape(), df.shape_of(step.var)
    if 0 in old:
        step.fix(step.labels().ids(), "has no elements")
        return Labels.none(len(new))
    return reshaped(step.labels(), df.tensors(step.call)[0], old, new)


def _shrink_reshape(shrink: Shrink, step: Step, call: relax.Call) -> Any:
    """Channels that were shuffled are gathered from the axis in which they were together."""
    labels = step.result()
    if shrink.is_gathered(labels.joint):
        return call.args[0]
    new, shape = shrink.call(step, call), shrink.shape(step)
    if tuple(shape) == df.shape_of(step.var):
        return new
    data = new.args[0]
    if labels.closing is not None and shrink.is_gathered(labels.closing[0]):
        joint, positions = labels.closing
        data = take(data, shrink.places(shrink.kept[joint.ids], positions), joint.axis)
    return relax.op.reshape(data, shape)


def _follow_permute(step: Step) -> Labels:
    return permuted(step.labels(), permutation(step.call), step.shape())


def _shrink_permute(shrink: Shrink, step: Step, call: relax.Call) -> Any:
    return call.args[0] if shrink.is_gathered(step.result().joint) else shrink.call(step, call)


def _follow_broadcast(step: Step) -> Labels:
    # An axis of one element that is repeated has no channels of its own.
    grown: list[Axis] = [None] * (len(df.shape_of(step.var)) - len(step.shape()))
    return Labels((*grown, *step.axes()))


def _shrink_broadcast(shrink: Shrink, step: Step, call: relax.Call) -> Any:
    return relax.op.broadcast_to(shrink.call(step, call).args[0], shrink.shape(step))


RESHAPE = Rule(_follow_reshape, _shrink_reshape)

RULES = {
    **dict.fromkeys(sorted(df.VIEWS), RESHAPE),
    "relax.permute_dims": Rule(_follow_permute, _shrink_permute),
    "relax.broadcast_to": Rule(_follow_broadcast, _shrink_broadcast),
}
