"""Run a program: values bit for bit, and cycles."""

from __future__ import annotations

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import (
    CycleBudgetError,
    DeadlockError,
    MissingTokenError,
    ProgramError,
)
from tvm_ext.codegen.isa import (
    DEFINITIONS,
    MEMORY,
    SRAM,
    Operands,
    Operation,
    Unit,
    registers_of,
)
from tvm_ext.codegen.program import Program
from tvm_ext.codegen.simulator.hazards import Hazards
from tvm_ext.codegen.simulator.memories import Memories
from tvm_ext.codegen.simulator.recorder import Recorder
from tvm_ext.codegen.simulator.result import Result
from tvm_ext.codegen.simulator.tokens import Token, TokenQueues

CYCLE_BUDGET = 10**10


def simulate(
    program: Program,
    accelerator: Accelerator,
    memory: np.ndarray,
    *,
    cycle_budget: int = CYCLE_BUDGET,
    arithmetic: bool = True,
) -> Result:
    """Run a program on one variant of the accelerator.

    The same program, hardware and memory give the same bytes and the same cycles every time. The
    timing model is in `docs/simulator.md`.

    Parameters
    ----------
    program : Program
        For this variant.
    accelerator : Accelerator
        The hardware.
    memory : ndarray of uint8
        (memory_bytes,): `Program.memory_image`; it is changed in place, and holds the results.
    cycle_budget : int
        An instruction that would end later stops the simulation before it is computed.
    arithmetic : bool
        False leaves all values as they are: cycles, bytes and all checks but no results.

    Returns
    -------
    Result
        Cycles, events and their sums.

    Raises
    ------
    ProgramError
        The program is for another variant, uses an instruction that this one lacks, or `memory`
        has another size or dtype, gaps, or can't be written.
    SimulationError
        The program did what the machine doesn't allow; the subclass says what, `pc` says where.
    """
    _check(program, accelerator, memory)
    machine = _Machine(program, accelerator, memory, cycle_budget, arithmetic)
    while machine.step():
        pass
    return machine.result()


def _check(program: Program, accelerator: Accelerator, memory: np.ndarray) -> None:
    if program.variant != accelerator.variant:
        raise ProgramError(
            f"the program is for the variant {program.variant!r}, not {accelerator.variant!r}"
        )
    for mnemonic in {item.mnemonic for item in program.instructions}:
        if reason := DEFINITIONS[mnemonic].missing_in(accelerator):
            raise ProgramError(f"accelerator {accelerator.name!r} lacks {mnemonic}: {reason}")
    if memory.shape != (program.memory_bytes,) or memory.dtype != np.uint8:
        raise ProgramError(
            f"memory is {memory.dtype} {memory.shape}; allowed: uint8 ({program.memory_bytes},)"
        )
    if not memory.flags.c_contiguous or not memory.flags.writeable:
        raise ProgramError("memory is a view with gaps or can't be written; allowed: neither")


class _Machine:
    def __init__(
        self, program: Program, accelerator: Accelerator, memory: np.ndarray, budget: int,
        arithmetic: bool,
    ) -> None:  # fmt: skip
        self._program, self._accelerator = program, accelerator
        self._budget, self._arithmetic = budget, arithmetic
        self._memories = Memories(program, accelerator, memory)
        self._tokens, self._hazards, self._recorder = TokenQueues(), Hazards(), Recorder()
        self._registers = {
            unit: {name: entry.reset for name, entry in registers_of(unit).items()} for unit in Unit
        }
        self._queues: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        for pc, item in enumerate(program.instructions):
            self._queues[item.unit].append(pc)
        self._next = dict.fromkeys(Unit, 0)
        self._free = dict.fromkeys(Unit, 0)
        self._bus_free = 0

    def step(self) -> bool:
        """Run the instruction that can start first; whether there was one.

        Time never goes back: what a later step makes possible can't start before this one, so the
        bus is given to the units in the order in which they ask.
        """
        chosen: tuple[int, Unit, Unit | None] | None = None
        blocked: dict[Unit, list[Unit]] = {}
        for unit, queue in self._queues.items():
            if self._next[unit] == len(queue):
                continue
            item = self._program.instructions[queue[self._next[unit]]]
            if missing := self._tokens.missing(unit, item):
                blocked[unit] = missing
                continue
            arrival, cause = self._tokens.arrival(unit, item)
            start = max(self._free[unit], arrival)
            if chosen is None or start < chosen[0]:
                chosen = start, unit, cause
        if chosen:
            self._run(*chosen)
        elif blocked:
            self._refuse_blocked(blocked)
        return chosen is not None

    def result(self) -> Result:
        """What happened."""
        return Result(
            self._program,
            self._accelerator,
            max(self._free.values()),
            self._recorder.events(),
            self._tokens.leftover(),
        )

    def _run(self, start: int, unit: Unit, cause: Unit | None) -> None:
        pc = self._queues[unit][self._next[unit]]
        item = self._program.instructions[pc]
        operation = Operation(pc, item.mnemonic, item.fields, self._registers[unit])
        definition = item.definition
        if item.pop_prev or item.pop_next:
            self._hazards.learn(unit, self._tokens.pop(unit, item))
        operands = definition.operands(operation)
        work = definition.work(operation, self._accelerator)
        bus_wait = 0
        if work.bus_cycles:
            asked = start + work.cycles - work.bus_cycles
            bus_wait = max(0, self._bus_free - asked)
        end = start + work.cycles + bus_wait
        if end > self._budget:
            raise CycleBudgetError(
                f"ends in cycle {end}; the cycle budget is {self._budget}", pc, item.mnemonic
            )
        if work.bus_cycles:
            self._bus_free = end
        if operands.writes:
            self._transfer(operation, operands, unit)
        self._registers[unit].update(definition.registers_after(operation))
        waited = start - self._free[unit]
        self._recorder.add(
            pc, unit, start, end, waited, cause if waited and cause is not None else -1, bus_wait,
            work.macs, _bytes_in(operands, SRAM), _bytes_in(operands, MEMORY),
        )  # fmt: skip
        self._next[unit] += 1
        self._free[unit] = end
        self._tokens.push(unit, item, Token(end, self._hazards.ended(unit)))

    def _transfer(self, operation: Operation, operands: Operands, unit: Unit) -> None:
        self._memories.check(operation, operands)
        self._hazards.check(unit, operation, operands)
        if self._arithmetic:
            inputs = [self._memories.read(operand) for operand in operands.reads]
            results = DEFINITIONS[operation.mnemonic].evaluate(operation, inputs)
            for operand, values in zip(operands.writes, results, strict=True):
                self._memories.write(operand, values)
        for operand in operands.writes:
            self._memories.mark_written(operand)

    def _refuse_blocked(self, blocked: dict[Unit, list[Unit]]) -> None:
        waits = {unit: self._queues[unit][self._next[unit]] for unit in blocked}
        story = "; ".join(
            f"{unit.label} waits at pc {waits[unit]} for {' and '.join(x.label for x in senders)}"
            for unit, senders in blocked.items()
        )
        for unit, senders in blocked.items():
            for sender in senders:
                if not self._can_push(sender, unit):
                    raise MissingTokenError(
                        f"no remaining {sender.label} instruction pushes a token to "
                        f"{unit.label} ({story})",
                        waits[unit],
                        self._program.instructions[waits[unit]].mnemonic,
                    )
        first = min(waits.values())
        raise DeadlockError(
            f"the units wait for each other: {story}",
            first,
            self._program.instructions[first].mnemonic,
        )

    def _can_push(self, sender: Unit, receiver: Unit) -> bool:
        flag = "push_next" if sender.next is receiver else "push_prev"
        rest = self._queues[sender][self._next[sender] :]
        return any(getattr(self._program.instructions[pc], flag) for pc in rest)


def _bytes_in(operands: Operands, space: str) -> int:
    boxes = (*operands.reads, *operands.writes)
    return sum(operand.nbytes for operand in boxes if operand.space == space)
