"""Ansor's transform steps, each as its own type, the fields in the order that records have.

Nothing here needs TVM: log readers take the forms of steps from these types.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import ClassVar


class Annotation(IntEnum):
    """What a loop becomes, with Ansor's numbers."""

    NONE = 0
    UNROLL = 1
    VECTORIZE = 2
    PARALLEL = 3
    VTHREAD = 4
    BLOCK_X = 5
    THREAD_X = 6
    BLOCK_Y = 7
    THREAD_Y = 8
    BLOCK_Z = 9
    THREAD_Z = 10
    TENSORIZE = 11


@dataclass(frozen=True, slots=True)
class Step:
    """A step; stages and iterators are counted from 0 as they stand before it."""

    kind: ClassVar[str]
    stage: int


@dataclass(frozen=True, slots=True)
class Split(Step):
    """Split an iterator: `extent` as Ansor knew it (0 for unknown), `lengths` of the parts.

    From the inside the lengths are those of the inner parts, else those of the outer ones; one
    more part takes what is left.
    """

    kind = "SP"
    iterator: int
    extent: int
    lengths: tuple[int, ...]
    from_inside: bool


@dataclass(frozen=True, slots=True)
class FollowSplit(Step):
    """Split as the step `source` did, with `levels` lengths: its first, the rest as one product."""

    kind = "FSP"
    iterator: int
    source: int
    levels: int


@dataclass(frozen=True, slots=True)
class FollowFusedSplit(Step):
    """Split in two by the product that the steps `sources` have at `level`."""

    kind = "FFSP"
    iterator: int
    sources: tuple[int, ...]
    level: int
    from_inside: bool


@dataclass(frozen=True, slots=True)
class Reorder(Step):
    """Put all iterators of the stage in this order."""

    kind = "RE"
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fuse(Step):
    """Make one iterator of several that follow each other."""

    kind = "FU"
    iterators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Annotate(Step):
    """Say what a loop becomes."""

    kind = "AN"
    iterator: int
    annotation: Annotation


@dataclass(frozen=True, slots=True)
class Pragma(Step):
    """Unroll by itself what has no more than `unroll` steps inside the loop; 0 for nothing."""

    kind = "PR"
    iterator: int
    unroll: int = field(metadata={"written_as": "str"})


@dataclass(frozen=True, slots=True)
class ComputeAt(Step):
    """Compute the stage inside a loop of another one."""

    kind = "CA"
    target: int
    iterator: int


@dataclass(frozen=True, slots=True)
class ComputeInline(Step):
    """Compute the stage where it is read."""

    kind = "CI"


@dataclass(frozen=True, slots=True)
class ComputeRoot(Step):
    """Compute the stage by itself."""

    kind = "CR"


@dataclass(frozen=True, slots=True)
class CacheRead(Step):
    """Copy a stage to this memory scope for some of its readers; the copy is the next stage."""

    kind = "CHR"
    scope: str
    readers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CacheWrite(Step):
    """Compute a stage in this memory scope; the copy to where it was is the next stage."""

    kind = "CHW"
    scope: str


@dataclass(frozen=True, slots=True)
class Rfactor(Step):
    """Reduce in two stages, the first of which has the iterator as a spatial axis.

    `position` is that axis's place in the new stage, which comes before the old one.
    """

    kind = "RF"
    iterator: int
    position: int


@dataclass(frozen=True, slots=True)
class StorageAlign(Step):
    """Align the stride of an axis to `offset` modulo `factor`."""

    kind = "SA"
    iterator: int
    factor: int
    offset: int


_CLASSES: tuple[type[Step], ...] = (
    Split, FollowSplit, FollowFusedSplit, Reorder, Fuse, Annotate, Pragma, ComputeAt,
    ComputeInline, ComputeRoot, CacheRead, CacheWrite, Rfactor, StorageAlign,
)  # fmt: skip
STEPS = MappingProxyType({step.kind: step for step in _CLASSES})
"""The types by kind."""
