"""What fusing two operators gives, and whether it pays: the table of DNNFusion."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tvm_ext.passes.fusion.mapping_type import MappingType


class Decision(str, Enum):
    """Whether a pair of operators goes into one kernel.

    `FUSE`: it pays. `PROFILE`: it depends on the sizes; measure, or ask the cost model. `NEVER`:
    the second operator would compute elements of the first many times over.
    """

    FUSE = "fuse"
    PROFILE = "profile"
    NEVER = "never"


class Fused(NamedTuple):
    """The mapping type of the pair, and whether to fuse it."""

    type: MappingType
    decision: Decision


_SHORT = {
    "1": MappingType.ONE_TO_ONE,
    "n": MappingType.ONE_TO_MANY,
    "M": MappingType.MANY_TO_MANY,
    "R": MappingType.REORGANIZE,
    "S": MappingType.SHUFFLE,
}
_DECISIONS = {"+": Decision.FUSE, "?": Decision.PROFILE, "-": Decision.NEVER}
_SECOND = "1nMRS"
# First operator: the type of the pair and the decision for each second operator of `_SECOND`.
_ROWS = {
    "1": "1+ n+ M+ R+ S+",
    "n": "n+ n? M- n? n?",
    "M": "M+ M? M- M? M?",
    "R": "R+ n+ M? R+ R+",
    "S": "S+ n+ M? R+ S+",
}
TABLE = {
    (_SHORT[first], _SHORT[second]): Fused(_SHORT[cell[0]], _DECISIONS[cell[1]])
    for first, row in _ROWS.items()
    for second, cell in zip(_SECOND, row.split(), strict=True)
}


def fuse(first: MappingType, second: MappingType) -> Fused:
    """What the table says of an operator followed by another.

    Parameters
    ----------
    first, second : MappingType
        Of the producer (or the group so far), and of the consumer for the input that it reads.
    """
    return TABLE[first, second]
