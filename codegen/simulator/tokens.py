"""Dependency tokens: when they arrive, and what a unit knows from them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tvm_ext.codegen.isa import Instruction, Unit

Clock = tuple[int, int, int]
"""For each unit, of how many of its instructions it is known that they have ended."""


@dataclass(frozen=True, slots=True)
class Token:
    """When it arrived, and what its sender knew then."""

    cycle: int
    clock: Clock


class TokenQueues:
    """The six queues between the units, empty at first, as long as needed."""

    def __init__(self) -> None:
        self._queues: dict[tuple[Unit, Unit], deque[Token]] = {
            (sender, receiver): deque()
            for sender in Unit
            for receiver in (sender.previous, sender.next)
        }

    def missing(self, unit: Unit, item: Instruction) -> list[Unit]:
        """The units whose token the instruction lacks."""
        return [
            sender
            for wanted, sender in ((item.pop_prev, unit.previous), (item.pop_next, unit.next))
            if wanted and not self._queues[sender, unit]
        ]

    def arrival(self, unit: Unit, item: Instruction) -> tuple[int, Unit | None]:
        """When the last token that it needs arrived, and from where; none is missing."""
        latest, cause = 0, None
        for wanted, sender in ((item.pop_prev, unit.previous), (item.pop_next, unit.next)):
            if wanted and self._queues[sender, unit][0].cycle > latest:
                latest, cause = self._queues[sender, unit][0].cycle, sender
        return latest, cause

    def pop(self, unit: Unit, item: Instruction) -> list[Token]:
        """Take the tokens that it needs."""
        taken = []
        if item.pop_prev:
            taken.append(self._queues[unit.previous, unit].popleft())
        if item.pop_next:
            taken.append(self._queues[unit.next, unit].popleft())
        return taken

    def push(self, unit: Unit, item: Instruction, token: Token) -> None:
        """Give the tokens that it owes."""
        if item.push_prev:
            self._queues[unit, unit.previous].append(token)
        if item.push_next:
            self._queues[unit, unit.next].append(token)

    def leftover(self) -> dict[str, int]:
        """Tokens that nothing took, by queue; those without any are left out."""
        return {
            f"{sender.label} -> {receiver.label}": len(queue)
            for (sender, receiver), queue in self._queues.items()
            if queue
        }
