"""Dependency tokens: an order between the units that is enough for the same results.

The stream is right if every instruction runs behind all before it. Units run their own instructions
in order; between two units an edge is added where one touches bytes that the other writes, unless
tokens that are there already order them. Edges from one unit to another never cross: each begins
and ends behind the one before. So the n-th token that is pushed is the n-th that is taken, and
since all edges lead forward in the stream, no unit ever waits for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm_ext.codegen.isa import TOKENS, Instruction, Operand, Unit
from tvm_ext.codegen.lowering.stream import Step

_Clock = list[int]


@dataclass(slots=True)
class _UnitState:
    known: _Clock = field(default_factory=lambda: [0, 0, 0])
    steps: list[int] = field(default_factory=list)
    ends: list[_Clock] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    """Places in `steps` whose bytes another unit may still have to wait for."""


def edges_of(steps: Sequence[Step], serial: bool) -> list[tuple[int, ...]]:
    """For each step the earlier steps of other units that it waits for, at most one a unit.

    Parameters
    ----------
    serial : bool
        Every instruction waits for the one before it: nothing overlaps.
    """
    if serial:
        return _serial_edges(steps)
    states = {unit: _UnitState() for unit in Unit}
    edges: list[tuple[int, ...]] = []
    for index, step in enumerate(steps):
        mine = states[step.unit]
        waits: tuple[int, ...] = ()
        if step.writes:
            for unit in (step.unit.previous, step.unit.next):
                other = states[unit]
                place = _latest_conflict(step, steps, other, mine.known[unit])
                if place is not None:
                    waits += (other.steps[place],)
                    mine.known = [max(x) for x in zip(mine.known, other.ends[place], strict=True)]
        mine.steps.append(index)
        mine.known[step.unit] = len(mine.steps)
        mine.ends.append(list(mine.known))
        if step.writes:
            _forget(mine, states, step.unit)
            mine.open.append(len(mine.steps) - 1)
        edges.append(waits)
    return edges


def with_tokens(steps: Sequence[Step], edges: Sequence[tuple[int, ...]]) -> list[Instruction]:
    """The instructions with the token bits that the edges need."""
    flags: list[set[str]] = [set() for _ in steps]
    for index, waits in enumerate(edges):
        receiver = steps[index].unit
        for other in waits:
            sender = steps[other].unit
            flags[other].add("push_next" if sender.next is receiver else "push_prev")
            flags[index].add("pop_prev" if receiver.previous is sender else "pop_next")
    return [
        Instruction(
            step.instruction.mnemonic, step.instruction.values, *(bit in bits for bit in TOKENS)
        )
        for step, bits in zip(steps, flags, strict=True)
    ]


def _serial_edges(steps: Sequence[Step]) -> list[tuple[int, ...]]:
    edges: list[tuple[int, ...]] = []
    for index, step in enumerate(steps):
        before = index - 1
        edges.append((before,) if index and steps[before].unit is not step.unit else ())
    return edges


def _latest_conflict(
    step: Step, steps: Sequence[Step], other: _UnitState, known: int
) -> int | None:
    """The place of the last step of another unit that has to end before this one starts."""
    for place in reversed(other.open):
        if place < known:
            return None
        earlier = steps[other.steps[place]]
        if (
            _touch(step.writes, earlier.reads)
            or _touch(step.writes, earlier.writes)
            or _touch(step.reads, earlier.writes)
        ):
            return place
    return None


def _touch(first: tuple[Operand, ...], second: tuple[Operand, ...]) -> bool:
    """Whether the address ranges overlap; of interleaved boxes that is more than needed."""
    for a in first:
        for b in second:
            if a.space == b.space and a.address < b.end and b.address < a.end:
                return True
    return False


def _forget(mine: _UnitState, states: dict[Unit, _UnitState], unit: Unit) -> None:
    """Drop the steps that both other units know to have ended."""
    done = min(states[other].known[unit] for other in (unit.previous, unit.next))
    first = 0
    while first < len(mine.open) and mine.open[first] < done:
        first += 1
    del mine.open[:first]
