"""Whether two operators go into one group, with the reason against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import scalar_name
from tvm_ext.passes.fusion.capabilities import takes_pool, takes_prologue
from tvm_ext.passes.fusion.mapping_type import MappingType, most_complex
from tvm_ext.passes.fusion.operators import Operator
from tvm_ext.passes.fusion.table import Decision, Fused, fuse

# Asked where the table says `PROFILE`, and of a pool behind its convolution, where it says `NEVER`:
# operators that one kernel can compute, and the groups that they are otherwise. True if the one
# kernel is faster.
Profile = Callable[[Sequence[Operator], Sequence[Sequence[Operator]]], bool]

# Why operators stay apart for which the answer was no.
SLOWER = "one kernel would be slower"


@dataclass(frozen=True)
class Refusal:
    """Two operators that were not fused.

    Attributes
    ----------
    first, second : str
        Variables of the producer and of the consumer.
    types : tuple of MappingType
        Of the producer's group and of the consumer.
    reason : str
    """

    first: str
    second: str
    types: tuple[MappingType, MappingType]
    reason: str


def seed_type(operator: Operator) -> MappingType:
    """The simplest type that an operator has for a computed input: what a seed is chosen by.

    A bias is broadcast, and still its addition is One-to-One for what is computed.
    """
    types = operator.types
    computed = [types[tensor] for tensor in df.free_vars(operator.expr) if tensor in types]
    return min(computed or types.values() or [MappingType.ONE_TO_ONE], key=list(MappingType).index)


def type_between(producers: Sequence[Operator], consumer: Operator) -> MappingType:
    """The type of `consumer` for what it reads of `producers`."""
    types = consumer.types
    return most_complex(types[p.var] for p in producers if p.var in types)


def decide(
    group: Sequence[Operator], first: MappingType, second: MappingType, joining: Operator
) -> Fused:
    """What the table says of two types; of what convolutions alone can take, that it depends.

    These are a pool behind, and steps before, which every task does that copies its input.

    Parameters
    ----------
    group : sequence of Operator
    first, second : MappingType
        Of the producing and of the consuming side; one is the group, the other is `joining`.
    joining : Operator
    """
    entry = fuse(first, second)
    if is_pool_stage(group, joining) or _is_prologue(group, joining):
        return Fused(entry.type, Decision.PROFILE)
    return entry


def is_pool_stage(group: Sequence[Operator], joining: Operator) -> bool:
    """Whether `joining` is a pool on a group's convolution, which one kernel can compute."""
    heavy = [op for op in group if not op.is_light]
    return len(heavy) == 1 and takes_pool(heavy[0].expr, joining.expr)


def _is_prologue(group: Sequence[Operator], joining: Operator) -> bool:
    """Whether fusing puts elementwise steps before an anchor."""
    if takes_prologue(joining.expr):
        return any(scalar_name(op.expr) and op.index < joining.index for op in group)
    after = (op for op in group if op.index > joining.index)
    return bool(scalar_name(joining.expr)) and any(takes_prologue(op.expr) for op in after)
