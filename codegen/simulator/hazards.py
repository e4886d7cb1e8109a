"""Accesses of two units to the same bytes that no token orders."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tvm_ext.codegen.errors import HazardError
from tvm_ext.codegen.isa import Operand, Operands, Operation, Unit
from tvm_ext.codegen.simulator.tokens import Clock, Token


@dataclass(frozen=True, slots=True)
class _Access:
    index: int
    operation: Operation
    operands: Operands


class Hazards:
    """Vector clocks over the units (Lamport; Mattern): an order that holds in any timing.

    Of two instructions in different units, one comes before the other only if a chain of tokens
    leads from the end of the one to the start of the other. Instructions without such a chain may
    run at the same time on other hardware, so they may share bytes only if both just read.
    """

    def __init__(self) -> None:
        self._known = {unit: [0, 0, 0] for unit in Unit}
        self._accesses: dict[Unit, deque[_Access]] = {unit: deque() for unit in Unit}

    def learn(self, unit: Unit, tokens: list[Token]) -> None:
        """Take over what the senders of these tokens knew."""
        known = self._known[unit]
        for token in tokens:
            for other, count in enumerate(token.clock):
                known[other] = max(known[other], count)
        for sender in (unit.previous, unit.next):
            accesses = self._accesses[sender]
            third = Unit(3 - unit - sender)
            done = min(known[sender], self._known[third][sender])
            while accesses and accesses[0].index < done:
                accesses.popleft()

    def ended(self, unit: Unit) -> Clock:
        """Count one more instruction of the unit; what a token that it pushes now carries."""
        known = self._known[unit]
        known[unit] += 1
        return known[0], known[1], known[2]

    def check(self, unit: Unit, operation: Operation, operands: Operands) -> None:
        """Compare an instruction with all that may run at the same time in another unit.

        Raises
        ------
        HazardError
            They share bytes and at least one writes them.
        """
        known = self._known[unit]
        for other in (unit.previous, unit.next):
            for access in self._accesses[other]:
                if access.index >= known[other]:
                    self._compare(operation, operands, other, access)
        self._accesses[unit].append(_Access(known[unit], operation, operands))

    def _compare(
        self, operation: Operation, operands: Operands, other: Unit, access: _Access
    ) -> None:
        theirs = access.operands
        pairs = (
            ("writes", operands.writes, "reads", theirs.reads),
            ("writes", operands.writes, "writes", theirs.writes),
            ("reads", operands.reads, "writes", theirs.writes),
        )
        for verb, mine, their_verb, others in pairs:
            for first in mine:
                for second in others:
                    if first.shares_bytes(second):
                        self._refuse(operation, verb, first, other, access, their_verb, second)

    def _refuse(
        self, operation: Operation, verb: str, first: Operand, other: Unit, access: _Access,
        their_verb: str, second: Operand,
    ) -> None:  # fmt: skip
        raise HazardError(
            f"{verb} {first.name} ({first.space} {first.address:#x} to {first.end:#x}) while the "
            f"{other.label} unit may still be at pc {access.operation.pc} "
            f"({access.operation.mnemonic}), which {their_verb} {second.name} ({second.address:#x} "
            f"to {second.end:#x}); a token between them is missing",
            operation.pc,
            operation.mnemonic,
        )
