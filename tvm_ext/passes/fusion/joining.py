"""Join groups whose kernels can go through both results tile by tile.

The table of mapping types never fuses two Many-to-Many operators, because a tile of the second
needs elements all over the first. Where it needs only a tile that no other needs, nothing is
computed twice and the result between is never stored: `producers.takes_producer` knows the pairs
of operators for which there are such kernels, and `Profile` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.conv_chain import is_enlargement
from tvm_ext.passes.fusion.decisions import SLOWER, Profile
from tvm_ext.passes.fusion.group_search import no_kernel
from tvm_ext.passes.fusion.operators import Operator
from tvm_ext.passes.fusion.producers import takes_producer

Group = list[Operator]
# Told the group, its producer's, and why they stay apart.
Refuse = Callable[[Group, Group, str], None]

# A product, its softmax and the product with that.
_LONGEST = 3


def joined(groups: Sequence[Group], profile: Profile, refuse: Refuse) -> list[Group]:
    """The groups, some of them joined with those that make their anchor's first input.

    Parameters
    ----------
    groups : sequence of list of Operator
        Each operator in one, in the order of the groups' results.
    profile : Profile
        Whether one kernel is faster.
    refuse : callable
        Told of each pair that stays apart.
    """
    owner = {op: group for group in groups for op in group}
    left = {id(group): group for group in groups}
    for group in groups:
        chain, reason = _chain(group, owner), ""
        for first in range(len(chain) - 1):
            parts = chain[first:]
            one = sorted((op for part in parts for op in part), key=lambda op: op.index)
            reason = no_kernel(one)
            if not reason and not profile(one, parts):
                reason = SLOWER
            if not reason:
                for part in parts:
                    del left[id(part)]
                left[id(one)] = one
                owner.update((op, one) for op in one)
                break
        if reason:
            refuse(chain[-1], chain[-2], reason)
    return sorted(left.values(), key=lambda g: g[-1].index)


def _chain(group: Group, owner: dict[Operator, Group]) -> list[Group]:
    """The groups that make each other's anchors' first inputs, ending with `group`."""
    chain = [group]
    while len(chain) < _LONGEST:
        before = _before(chain[0], owner)
        if before is None:
            break
        chain.insert(0, before)
    return chain


def _before(group: Group, owner: dict[Operator, Group]) -> Group | None:
    """The group that makes the first input of a group's anchor, for no other group."""
    anchors = [op for op in group if not op.is_light]
    if not anchors or not anchors[0].static or not df.tensors(anchors[0].expr):
        return None
    source = df.tensors(anchors[0].expr)[0]
    producer = next((p for p in anchors[0].producers if p.var.same_as(source)), None)
    if producer is None or producer in group or producer.read_outside:
        return None
    before = owner[producer]
    # An enlargement that only repeats elements is no kernel's anchor elsewhere.
    heavy = [op for op in before if not op.is_light or is_enlargement(op.expr)]
    if not heavy or not takes_producer(anchors[0].expr, heavy[-1].expr):
        return None
    if producer is not before[-1] or any(reader not in group for reader in producer.consumers):
        return None
    return before
