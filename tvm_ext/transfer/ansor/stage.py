"""A stage as a record's steps change it: its loops, where it is computed, what its loops become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from tvm_ext.transfer.ansor_step_types import Annotation


@dataclass(eq=False, slots=True)
class Iterator:
    """A loop to be.

    Attributes
    ----------
    name : str
        For messages, such as ``i2.1``: part 1 of the third axis.
    reduction : bool
        Whether it runs over an axis of a reduction.
    extent : int
        Its length while the stage is computed by itself; 0 for a part of a split.
    successor : Iterator or None
        What became of it: the innermost part of its split, or what it was fused into. A stage
        computed at it stays there.
    """

    name: str
    reduction: bool
    extent: int
    successor: Iterator | None = None

    def last(self) -> Iterator:
        """What is left of it in the end."""
        iterator = self
        while iterator.successor is not None:
            iterator = iterator.successor
        return iterator


@dataclass(frozen=True, slots=True)
class SplitLoop:
    """`source` becomes `parts`, one more than `lengths`; `step` is the index of its step."""

    step: int
    kind: str
    source: Iterator
    lengths: tuple[int, ...]
    from_inside: bool
    parts: tuple[Iterator, ...]


@dataclass(frozen=True, slots=True)
class ReorderLoops:
    """All loops of the stage, in the new order."""

    step: int
    kind: str
    order: tuple[Iterator, ...]


@dataclass(frozen=True, slots=True)
class FuseLoops:
    """`parts` become `fused`; without parts it is a new loop of one step."""

    step: int
    kind: str
    parts: tuple[Iterator, ...]
    fused: Iterator


LoopChange = SplitLoop | ReorderLoops | FuseLoops


@dataclass(frozen=True, slots=True)
class Root:
    """Computed by itself."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Computed where it is read."""

    step: int


@dataclass(frozen=True, slots=True)
class At:
    """Computed inside a loop of another stage."""

    step: int
    target: Stage
    iterator: Iterator


@dataclass(frozen=True, slots=True)
class Mark:
    """What a loop becomes: an annotation, or (`unroll`) a limit of steps for unrolling."""

    step: int
    kind: str
    iterator: Iterator
    annotation: Annotation
    unroll: int = 0


@dataclass(frozen=True, slots=True)
class Alignment:
    """The stride of an axis, `offset` modulo `factor`."""

    step: int
    axis: int
    factor: int
    offset: int


@dataclass(eq=False, slots=True)
class Stage:
    """A stage.

    Attributes
    ----------
    label : str
        Its name in what Ansor prints.
    block : str
        Its block in the schedule; of a placeholder the buffer.
    placeholder : bool
    axes : tuple of Iterator
        As the stage starts: spatial axes, then those of the reduction.
    iterators : list of Iterator
        As they are now, from the outside in.
    changes : list
        How `axes` became `iterators`.
    location : Root, Inline or At
    marks, alignments : list
    """

    label: str
    block: str
    placeholder: bool
    axes: tuple[Iterator, ...] = ()
    iterators: list[Iterator] = field(default_factory=list)
    changes: list[LoopChange] = field(default_factory=list)
    location: Root | Inline | At = Root()
    marks: list[Mark] = field(default_factory=list)
    alignments: list[Alignment] = field(default_factory=list)

    @classmethod
    def fresh(cls, label: str, block: str, axes: Sequence[Iterator]) -> Stage:
        """A computed stage as no step has changed it."""
        return cls(label, block, False, tuple(axes), list(axes))

    @property
    def touched(self) -> bool:
        """Whether a step has changed its loops or marked one."""
        return bool(self.changes or self.marks or self.alignments)

    def split(
        self, step: int, kind: str, index: int, lengths: Sequence[int], from_inside: bool
    ) -> None:
        """Replace an iterator by its parts."""
        source = self.iterators[index]
        parts = tuple(
            [Iterator(f"{source.name}.{i}", source.reduction, 0) for i in range(len(lengths) + 1)]
        )
        source.successor = parts[-1]
        self.iterators[index : index + 1] = parts
        self.changes.append(SplitLoop(step, kind, source, tuple(lengths), from_inside, parts))

    def reorder(self, step: int, kind: str, order: Sequence[int]) -> None:
        """Put the iterators in this order."""
        self.iterators = [self.iterators[index] for index in order]
        self.changes.append(ReorderLoops(step, kind, tuple(self.iterators)))

    def fuse(self, step: int, kind: str, indices: Sequence[int]) -> None:
        """Replace neighbours by one; without any, put a new one first."""
        parts = tuple([self.iterators[index] for index in indices])
        name = "@".join(part.name for part in parts) or "unit"
        extent = prod(part.extent for part in parts)
        fused = Iterator(name, any(part.reduction for part in parts), extent)
        for part in parts:
            part.successor = fused
        start = indices[0] if indices else 0
        self.iterators[start : start + len(parts)] = [fused]
        self.changes.append(FuseLoops(step, kind, parts, fused))
