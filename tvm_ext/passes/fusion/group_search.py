"""Questions about groups while they grow."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.kernel_parts import NoKernel
from tvm_ext.passes.fusion.operators import Operator

# Operators looked at for a path through the outside. Further apart, operators aren't fused, so that
# planning stays linear in their number.
_MAX_SEARCH = 512


class Queue:
    """Operators by their place in the function, each handed out once."""

    def __init__(self, operators: Iterable[Operator], latest_first: bool = False) -> None:
        self._sign = -1 if latest_first else 1
        self._heap: list[tuple[int, Operator]] = []
        self._seen: set[Operator] = set()
        self.push(operators)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, operators: Iterable[Operator]) -> None:
        for op in operators:
            if op not in self._seen:
                self._seen.add(op)
                heapq.heappush(self._heap, (self._sign * op.index, op))

    def pop(self) -> Operator:
        return heapq.heappop(self._heap)[1]


def has_kernel(group: Sequence[Operator]) -> bool:
    """Whether a member needs a kernel of its own."""
    return any(not op.is_light for op in group)


def has_single_result(group: Sequence[Operator]) -> bool:
    """Whether only the last value of a group is read outside it."""
    return all(
        not op.read_outside and all(reader in group for reader in op.consumers) for op in group[:-1]
    )


def no_kernel(group: Sequence[Operator]) -> str:
    """Why a group isn't one kernel; an empty string if it is."""
    try:
        kernel_form([(op.var, op.expr) for op in sorted(group, key=lambda m: m.index)])
    except NoKernel as reason:
        return str(reason)
    return ""


def reaches(members: set[Operator], op: Operator) -> bool:
    """Whether `op` depends on a member; also if that is too far to look."""
    first = min(member.index for member in members)
    stack, seen = [op], {op}
    while stack:
        at = stack.pop()
        if at in members or len(seen) > _MAX_SEARCH:
            return True
        for producer in at.producers:
            if producer.index >= first and producer not in seen:
                seen.add(producer)
                stack.append(producer)
    return False
