"""What the attributes of operators say of axes, with negative numbers and defaults resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax, tirx

from tvm_ext.passes import dataflow as df


def permutation(call: relax.Call) -> tuple[int, ...]:
    """The axes of a `permute_dims`, as numpy takes them; without any it reverses them."""
    rank = len(df.shape_of(call.args[0]))
    axes = call.attrs.axes
    return tuple(int(a) % rank for a in (reversed(range(rank)) if axes is None else axes))


def transpose(value: Any, axes: Sequence[int]) -> Any:
    """`value` under a permutation, itself where that changes nothing."""
    order = list(axes)
    return value if order == sorted(order) else relax.op.permute_dims(value, order)


def slice_ranges(call: relax.Call) -> list[tuple[int, range]] | None:
    """The axes that a `strided_slice` names, with what it keeps of each.

    None where its bounds are computed.
    """
    shape = df.shape_of(call.args[0])
    numbers = [_numbers(arg) for arg in call.args[1:]]
    if len(numbers) < 3 or any(n is None for n in numbers):
        return None
    axes, begins, ends, *rest = (n or [] for n in numbers)
    steps = (rest[0] if rest else []) or [1] * len(axes)
    return [
        (axis % len(shape), range(*slice(begin, end, step).indices(shape[axis % len(shape)])))
        for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True)
    ]


def reduced_axes(call: relax.Call) -> tuple[int, ...]:
    """The axes of a reduction in order; without any it is over all."""
    rank = len(df.shape_of(call.args[0]))
    axes = call.attrs.axis
    return tuple(sorted(int(a) % rank for a in (range(rank) if axes is None else axes)))


def reduces_positions(call: relax.Call) -> bool:
    """Whether a reduction is over all positions of each channel, and nothing else."""
    rank = len(df.shape_of(call.args[0]))
    return rank > 2 and reduced_axes(call) == tuple(range(2, rank))


def concat_axis(call: relax.Call) -> int:
    """The axis of a `concat` whose parts are listed; without one they have a single dimension."""
    rank = len(df.shape_of(call.args[0].fields[0]))
    return 0 if call.attrs.axis is None else int(call.attrs.axis) % rank


def concat(parts: Sequence[Any], axis: int) -> Any:
    """Values one after the other; a single one is itself."""
    return parts[0] if len(parts) == 1 else relax.op.concat(list(parts), axis)


def reshape(value: Any, shape: Sequence[int]) -> Any:
    """`value` under another shape, itself where that is its own."""
    return value if df.shape_of(value) == tuple(shape) else relax.op.reshape(value, shape)


@dataclass(frozen=True)
class Part:
    """Elements [begin, end) of one axis."""

    axis: int
    begin: int
    end: int

    @classmethod
    def of(cls, call: relax.Call) -> Part | None:
        """What a `strided_slice` cuts out; None if it isn't one run of one axis, known now."""
        ranges = slice_ranges(call)
        if ranges is None or len(ranges) != 1:
            return None
        ((axis, kept),) = ranges
        return cls(axis, kept.start, max(kept.start, kept.stop)) if kept.step == 1 else None

    def cut(self, value: Any) -> Any:
        """This part of a value, itself if that is all of it."""
        if (self.begin, self.end) == (0, df.shape_of(value)[self.axis]):
            return value
        return relax.op.strided_slice(value, [self.axis], [self.begin], [self.end])


def _numbers(arg: object) -> list[int] | None:
    """A tuple of numbers known now."""
    if not isinstance(arg, relax.Tuple):
        return None
    values = [getattr(field, "value", field) for field in arg.fields]
    known = all(isinstance(v, (int, tirx.IntImm)) for v in values)
    return [int(v) for v in values] if known else None
