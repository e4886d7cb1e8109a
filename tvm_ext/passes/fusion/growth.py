"""The fusion plan: groups grow from seeds, as DNNFusion grows them.

Niu et al., "DNNFusion: Accelerating Deep Neural Networks Execution with Advanced Operator Fusion"
(2021): the One-to-One operator with the smallest result is the seed; its group takes successors,
then predecessors, while the table of mapping types and the kernels' limits allow. Here, what is
left after the One-to-One seeds (products, convolutions, reductions) is a seed as well, so that it
takes the operators around it which only move elements. Last, groups of which one kernel can go
through both results tile by tile are joined; see `joining`.

Every group has one result and no path through the outside, and so the groups form an acyclic graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm_ext.passes.fusion.capabilities import takes_epilogue, takes_pool, takes_prologue
from tvm_ext.passes.fusion.decisions import (
    SLOWER,
    Profile,
    Refusal,
    decide,
    is_pool_stage,
    seed_type,
    type_between,
)
from tvm_ext.passes.fusion.group_search import (
    Queue,
    has_kernel,
    has_single_result,
    no_kernel,
    reaches,
)
from tvm_ext.passes.fusion.joining import joined
from tvm_ext.passes.fusion.mapping_type import MappingType
from tvm_ext.passes.fusion.moves import repeats
from tvm_ext.passes.fusion.operators import Operator
from tvm_ext.passes.fusion.table import Decision, Fused
from tvm_ext.passes.fusion.trimming import trim

# What a group may hold: registers, and the time to compile it.
_MAX_OPERATORS = 24


class Growth:
    """Grows groups over the operators of one function.

    Attributes
    ----------
    refusals : list of Refusal
        The pairs that a group stopped at.
    """

    def __init__(self, operators: Sequence[Operator], profile: Profile) -> None:
        self.operators, self.profile = operators, profile
        self.refusals: list[Refusal] = []
        self._taken: set[Operator] = set()

    def groups(self) -> list[list[Operator]]:
        """Every operator in exactly one group, ordered by the groups' results."""
        seeds = [op for op in self.operators if op.static]
        types = {op: seed_type(op) for op in seeds}
        order = {MappingType.ONE_TO_ONE: 0, MappingType.MANY_TO_MANY: 1}
        # A pool on a convolution waits for that to grow: no group takes both once it has the pool.
        waits = {op: any(takes_pool(p.expr, op.expr) for p in op.producers) for op in seeds}
        seeds.sort(key=lambda op: (order.get(types[op], 2), waits[op], op.nbytes, op.index))
        found = []
        for seed in seeds:
            if seed not in self._taken:
                group = trim(self._grown(seed, types[seed]))
                if len(group) > 1 or seed.moves is None:  # else a later group may take it
                    self._taken.update(group)
                    found.append(group)
        found += [[op] for op in self.operators if op not in self._taken]
        found.sort(key=lambda group: group[-1].index)
        return joined(found, self.profile, self._refuse_joining)

    def _refuse_joining(self, group: list[Operator], before: list[Operator], reason: str) -> None:
        many = MappingType.MANY_TO_MANY
        self._refuse(before, many, next(op for op in group if not op.is_light), many, reason)

    def _grown(self, seed: Operator, kind: MappingType) -> list[Operator]:
        """A seed with its successors and its predecessors; then the pool of a convolution."""
        group = self._around(seed, kind)
        (pool,) = group[-1].consumers if len(group[-1].consumers) == 1 else (None,)
        if pool is None or pool in self._taken or not pool.static or group[-1].read_outside:
            return group
        wider = [*group, pool]
        if not is_pool_stage(group, pool) or no_kernel(wider):
            return group
        if self.profile(wider, [group, [pool]]):
            return wider
        self._refuse(group, MappingType.MANY_TO_MANY, pool, MappingType.MANY_TO_MANY, SLOWER)
        return group

    def _around(self, seed: Operator, kind: MappingType) -> list[Operator]:
        """A seed with its successors, then its predecessors."""
        steps, grown = self._successors([seed], kind)
        group = self._predecessors(steps, grown)
        if has_kernel(group) or not self._is_carried(seed):
            return group
        # The anchor before the seed can't go on with all of the steps, but has no others.
        for count in range(len(steps) - 1, 0, -1):
            if has_single_result(steps[:count]):
                nearer = self._predecessors(steps[:count], kind)
                if has_kernel(nearer):
                    # It may store what it computes in an order that no kernel without it has.
                    return self._successors(nearer, MappingType.MANY_TO_MANY)[0]
        return group

    def _successors(
        self, start: list[Operator], kind: MappingType
    ) -> tuple[list[Operator], MappingType]:
        """The longest group from `start` on that is a kernel with a single result."""
        group, best, best_kind = [*start], len(start), kind
        queue = Queue(op for member in group for op in member.consumers)
        open_reason, asked = "", False
        while queue and len(group) < _MAX_OPERATORS:
            op = queue.pop()
            if not op.static or op in self._taken or op in group:
                continue
            second = type_between(group, op)
            entry = decide(group, kind, second, op)
            if reason := _never(entry, kind, second) or self._stranger(group, op):
                self._refuse(group, kind, op, second, reason)
                continue
            group.append(op)
            kind = entry.type
            asked |= entry.decision is Decision.PROFILE
            queue.push(op.consumers)
            # A value that is still read outside may yet get its last reader.
            if not has_single_result(group) or (open_reason := no_kernel(group)):
                continue
            if asked and not self.profile(group, [group[:best], *([m] for m in group[best:])]):
                open_reason = SLOWER
                continue
            best, best_kind, asked = len(group), kind, False
        if best < len(group):
            second = seed_type(group[best])
            reason = open_reason or "its input is read outside, too"
            self._refuse(group[:best], best_kind, group[best], second, reason)
        return group[:best], best_kind

    def _predecessors(self, group: list[Operator], kind: MappingType) -> list[Operator]:
        """The group with the producers that only it reads."""
        queue = Queue((p for op in group for p in op.producers), latest_first=True)
        while queue and len(group) < _MAX_OPERATORS:
            op = queue.pop()
            if op in group or op in self._taken or not op.static or op.read_outside:
                continue
            if any(reader not in group for reader in op.consumers):
                continue
            if has_kernel(group) and (not op.is_light or self._is_carried(op)):
                continue
            first = seed_type(op)
            entry, added = decide(group, first, kind, op), self._with_move(op)
            reason = _never(entry, first, kind)
            if not reason and (reason := no_kernel([*added, *group])) and op.moves is not None:
                # Before an anchor's result is stored, it may be moved in ways that no operand can.
                added = self._up_to_anchor(op)
                reason = no_kernel([*added, *group])
            wider = sorted([*added, *group], key=lambda member: member.index)
            if not reason and entry.decision is Decision.PROFILE:
                parts = [*([m] for m in reversed(added)), group]
                reason = "" if self.profile(wider, parts) else SLOWER
            if reason:
                self._refuse([op], first, next(m for m in group if m in op.consumers), kind, reason)
                continue
            group, kind = wider, entry.type
            queue.push(p for member in wider for p in member.producers)
        return group

    def _with_move(self, op: Operator) -> list[Operator]:
        """An operator; a view, which saves nothing by itself, with the moves that it is a view of.

        These are views, too, but for the first.
        """
        chain = [op]
        while op.is_view and op.producers:
            op = op.producers[0]
            alone = len(op.consumers) == 1 and not op.read_outside
            if op in self._taken or not op.static or not alone or op.moves is None:
                break
            chain.append(op)
        return chain

    def _up_to_anchor(self, op: Operator) -> list[Operator]:
        """A move and those before it, up to an anchor that only they read."""
        chain = [op]
        while op.moves is not None and op.producers:
            op = op.producers[0]
            if op in self._taken or not op.static or len(op.consumers) > 1 or op.read_outside:
                break
            chain.append(op)
        return chain

    def _stranger(self, group: Sequence[Operator], op: Operator) -> str:
        """Why a consumer can't be a member, whatever its type; an empty string if it can."""
        if not op.is_light and not is_pool_stage(group, op):
            if has_kernel(group):
                return "both have a kernel of their own"
            steps = [member for member in group if member.moves is None]
            if steps and not takes_prologue(op.expr):
                return "its kernel computes nothing before it"
            if any(self._is_carried(step) for step in steps):
                return "the kernel before takes the steps"
        if repeats(op.expr) and self._is_carried(group[0]):
            return "the kernel before it stores each element once"
        members = set(group)
        last = max(p.index for p in op.producers if p in members)
        later = [p for p in op.producers if p.index > last and p not in members]
        if op.is_light and any(self._is_carried(p) for p in later):
            return "a later branch takes it"
        if any(reaches(members, p) for p in op.producers if p not in members):
            return "it also reads what is computed from the group outside"
        return ""

    def _is_carried(self, op: Operator) -> bool:
        """Whether an elementwise operator has a kernel before it that can go on with it."""
        while op.static and op not in self._taken and not repeats(op.expr):
            if not op.is_light:
                return takes_epilogue(op.expr)
            before = [
                p
                for p in op.producers
                if len(p.consumers) == 1 and not p.read_outside and not repeats(p.expr)
            ]
            if not before:
                return False
            op = before[-1]
        return False

    def _refuse(
        self, group: Sequence[Operator], first: MappingType, op: Operator, second: MappingType,
        reason: str,
    ) -> None:  # fmt: skip
        producer = next((m for m in reversed(group) if m in op.producers), group[-1])
        names = (str(producer.var.name), str(op.var.name))
        self.refusals.append(Refusal(*names, (first, second), reason))


def _never(entry: Fused, first: MappingType, second: MappingType) -> str:
    """The reason if the table excludes a pair of types; an empty string if it doesn't."""
    if entry.decision is not Decision.NEVER:
        return ""
    return f"{first.value} before {second.value} is never fused"
