"""A trace run instruction by instruction on a function that it wasn't made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Instruction, LoopRV, SBlockRV, Trace

from tvm_ext.errors import TransferError
from tvm_ext.schedules.tuned import first_line
from tvm_ext.transfer.trace_kinds import KINDS
from tvm_ext.transfer.trace_template_stages import PLAIN, LoopMap, is_reduction
from tvm_ext.transfer.trace_template_tiles import divisors, rescale

# What TVM raises where an instruction does not apply.
REFUSED = (RuntimeError, ValueError, IndexError, TypeError)
# The widest vector loop and the longest unrolled one, as MetaSchedule's rules for CPUs have them.
_WIDEST, _LONGEST = 64, 64
# What a wider vector loop is split into: a register of AVX-512.
_VECTOR = 16
# The loops of a convolution's reduction.
_CONVOLVED = 3
# Instructions that make a block.
_MAKERS = ("CacheRead", "CacheWrite", "RFactor")
_MISSING = object()


class TraceRun:
    """Carries out instructions on a schedule, with decisions for the loops that it meets.

    - Tiles of a loop become divisors of its extent, by `rule`. Splits by constants do, too, with
      their sizes kept as near as can be; they are sampled tiles then, so that the trace that is
      made fits other functions, and a search can change them.
    - Instructions on what is missing are left out: on blocks that `names` has no counterpart for,
      and on what comes of them.
    - A vector loop of more than 64 steps is split first, and one of more than 64 steps isn't
      unrolled, unless the trace is `exact`.

    Parameters
    ----------
    schedule : Schedule
    names : dict of str to str or None
        The block of the function for each block of the trace; None for one that is missing.
        Blocks without an entry keep their names.
    rule : str
        Of `rescale`.
    loops : LoopMap
        How the loops of the trace's anchor stand for those of the function's.
    exact : bool
        Whether the function has the shapes that the trace was measured on.
    """

    def __init__(
        self, schedule: Schedule, names: Mapping[str, str | None], rule: str, loops: LoopMap,
        exact: bool,
    ) -> None:  # fmt: skip
        self.schedule = schedule
        self._names, self._rule, self._map, self._exact = names, rule, loops, exact
        # Of the trace's blocks, loops and numbers to those of the schedule.
        self._values: dict[Any, Any] = {}
        self._made: dict[str, Any] = {}

    def run(self, trace: Trace) -> None:
        """Carry out all that comes before the postprocessing.

        Raises
        ------
        TransferError
            TensorIR refuses an instruction: which one, and why.
        """
        for instruction in trace.insts:
            kind = str(instruction.kind.name)
            if kind == "EnterPostproc":
                break
            try:
                self._step(kind, instruction, trace.get_decision(instruction))
            except REFUSED as error:
                raise TransferError(f"{kind}: {first_line(error)}") from error

    def _step(self, kind: str, instruction: Instruction, decision: Any) -> None:
        inputs = [self._value(value) for value in instruction.inputs]
        # Consumers asked for without any answer: nothing depends on it.
        idle = kind == "GetConsumers" and not instruction.outputs
        if idle or any(value is _MISSING for value in inputs):
            return
        attrs = list(instruction.attrs)
        if kind == "GetSBlock":
            name = str(attrs[0])
            if name in self._made:
                self._values[instruction.outputs[0]] = self._made[name]
                return
            attrs[0] = self._names.get(name, name)
            if attrs[0] is None:
                return
        found = self._apply(kind, inputs, attrs, decision)
        if kind == "GetLoops":
            self._loops(inputs[0], instruction.outputs, list(found))
            return
        results = list(found) if isinstance(found, Sequence) else [found]
        if instruction.outputs:
            self._values.update(zip(instruction.outputs, results, strict=True))
        if kind in _MAKERS:
            self._made[str(self.schedule.get(found).name_hint)] = found

    def _apply(self, kind: str, inputs: list[Any], attrs: list[Any], decision: Any) -> Any:
        if kind not in KINDS:
            raise ValueError(f"no such kind is known; allowed: {', '.join(KINDS)}")
        schedule = self.schedule
        if kind == "Split":
            inputs = [inputs[0], *self._factors(inputs[0], inputs[1:])]
        elif kind == "RFactor" and self._map.block:
            attrs = [int(attrs[0]) - 1]
        elif kind == "ReorderBlockIterVar":
            inputs = [inputs[0], self._order(inputs[0], inputs[1])]
        elif kind == "SamplePerfectTile" and decision is not None:
            old = [int(x) for x in decision]
            decision = rescale(old, self._extent(inputs[0]), self._rule, int(attrs[1]))
        elif kind == "Vectorize" and not self._exact and self._extent(inputs[0]) > _WIDEST:
            inputs = [self._narrowed(inputs[0])]
        elif kind == "Unroll" and not self._exact and self._extent(inputs[0]) > _LONGEST:
            return None
        return KINDS[kind](schedule, inputs, attrs, decision)

    def _factors(self, loop: Any, given: list[Any]) -> list[Any]:
        """The factors of a split: those that were sampled, or tiles in place of constants."""
        given = [int(f) if isinstance(f, tirx.IntImm) else f for f in given]
        if not all(factor is None or isinstance(factor, int) for factor in given):
            return given
        extent = self._extent(loop)
        rest = prod(factor for factor in given if factor is not None)
        factors = [-(-extent // rest) if factor is None else factor for factor in given]
        if self._exact and prod(factors) != extent:
            # Its last round is guarded by a predicate.
            return given
        most = max(_WIDEST, factors[-1])
        decision = rescale(factors, extent, "tiles", most)
        return list(self.schedule.sample_perfect_tile(loop, len(factors), most, decision))

    def _order(self, block: Any, order: Sequence[Any]) -> list[int]:
        """An order of a block's iterators, without that of a block of channels."""
        numbers = [int(number) for number in order]
        if self._map.block and len(self.schedule.get(block).iter_vars) == len(numbers) - 1:
            # RFactor, which alone such orders follow, puts one iterator before the spatial ones.
            missing = PLAIN + 1
            numbers = [number - (number > missing) for number in numbers if number != missing]
        return numbers

    def _value(self, value: Any) -> Any:
        """The schedule's own for a block, a loop or a number of the trace."""
        if isinstance(value, (SBlockRV, LoopRV, tirx.Var)):
            return self._values.get(value, _MISSING)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self._value(item) for item in value]
        return value

    def _loops(self, block: Any, outputs: Sequence[Any], found: list[Any]) -> None:
        """Note the loops of a block, those of the function that stand for those of the trace."""
        variables = self.schedule.get(block).iter_vars
        if self._map.block and len(found) == len(outputs) - 1:
            found = self._blocked(found, len(found) - len(variables) + PLAIN - 1)
        elif self._map.rotated and sum(is_reduction(v) for v in variables) == _CONVOLVED:
            channels, rows, columns = found[-_CONVOLVED:]
            found[-_CONVOLVED:] = [rows, columns, channels]
        # Where the block isn't computed inside another, as in the trace, the outer ones are
        # missing; its own are the last ones.
        count = min(len(found), len(outputs))
        self._values.update(zip(outputs[-count:], found[-count:], strict=True))

    def _blocked(self, found: list[Any], place: int) -> list[Any]:
        """The loops with one of them split in two, the inner one for a block."""
        factors = rescale([1, self._map.block], self._extent(found[place]), "tiles", _WIDEST)
        tile = self.schedule.sample_perfect_tile(found[place], 2, _WIDEST, factors)
        return [*found[:place], *self.schedule.split(found[place], tile), *found[place + 1 :]]

    def _narrowed(self, loop: Any) -> Any:
        """The inner part of a loop that is too long for a vector loop."""
        extent = self._extent(loop)
        width = max(d for d in divisors(extent) if d <= _VECTOR)
        tile = self.schedule.sample_perfect_tile(loop, 2, _WIDEST, [extent // width, width])
        return self.schedule.split(loop, tile)[1]

    def _extent(self, loop: Any) -> int:
        return int(self.schedule.get(loop).extent)
