"""Join groups whose kernels can go through both results tile by tile.

The table of mapping types never fuses two Many-to-Many operators, because a tile of the second
needs elements all over the first. Where it needs only a tile that no other needs, nothing is
computed twice and the result between is never stored: `producers.takes_producer` knows the pairs
of operators for which there are such kernels, and `Profile` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion import row_chain
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
            parts = [part for link in chain[first:] for part in link]
            # The views before the first kernel belong to none.
            parts = parts[len(chain[first]) - 1 :]
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
            refuse(group, chain[-2][-1], reason)
    return sorted(left.values(), key=lambda g: g[-1].index)


def _chain(group: Group, owner: dict[Operator, Group]) -> list[list[Group]]:
    """The groups that make each other's anchors' first inputs, ending with `group`.

    Each comes last, behind the views through which it reads the one before.
    """
    chain = [[group]]
    while len(chain) < _LONGEST:
        views, before = _before(chain[0][-1], owner)
        if before is None:
            break
        chain[0] = [*views, *chain[0]]
        chain.insert(0, [before])
    return chain


def _before(group: Group, owner: dict[Operator, Group]) -> tuple[list[Group], Group | None]:
    """The group that makes the first input of a group's anchor, for no other group.

    Before it, the views of its result that the anchor reads, of which each is a group.
    """
    anchors = [op for op in group if not op.is_light]
    if not anchors or not anchors[0].static or not df.tensors(anchors[0].expr):
        return [], None
    views: list[Group] = []
    source = _read_from(anchors[0], group, owner)
    while source is not None and source.is_view and len(owner[source]) == 1:
        views.insert(0, owner[source])
        source = _read_from(source, owner[source], owner)
    if source is None:
        return [], None
    before = owner[source]
    # An enlargement that only repeats elements is no kernel's anchor elsewhere.
    heavy = [op for op in before if not op.is_light or is_enlargement(op.expr)]
    # Of what is behind views, rows alone are read as they are.
    reads = row_chain.computes if views else takes_producer
    if not heavy or not reads(anchors[0].expr, heavy[-1].expr):
        return [], None
    return views, before


def _read_from(op: Operator, group: Group, owner: dict[Operator, Group]) -> Operator | None:
    """The result of another group that `op` reads first, and nothing outside its group does."""
    first = df.tensors(op.expr)[0]
    producer = next((p for p in op.producers if p.var.same_as(first)), None)
    if producer is None or producer in group or not producer.static or producer.read_outside:
        return None
    if producer is not owner[producer][-1]:
        return None
    return None if any(reader not in group for reader in producer.consumers) else producer
