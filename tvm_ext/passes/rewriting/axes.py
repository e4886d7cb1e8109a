"""What the attributes of operators say of axes, with negative numbers and defaults resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import relax, tirx

from tvm_ext.passes import dataflow as df


def permutation(call: relax.Call) -> list[int]:
    """The axes of a `permute_dims`; without any it reverses them."""
    rank = len(df.shape_of(call.args[0]))
    axes = call.attrs.axes
    return [int(a) % rank for a in (reversed(range(rank)) if axes is None else axes)]


def transpose(value: Any, axes: list[int]) -> Any:
    """`value` under a permutation, itself where that changes nothing."""
    return value if axes == sorted(axes) else relax.op.permute_dims(value, axes)


def reduced_axes(call: relax.Call) -> tuple[int, ...]:
    """The axes of a reduction in order; without any it is over all."""
    rank = len(df.shape_of(call.args[0]))
    axes = call.attrs.axis
    return tuple(sorted(int(a) % rank for a in (range(rank) if axes is None else axes)))


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
        shape = df.shape_of(call.args[0])
        numbers = [_numbers(arg) for arg in call.args[1:]]
        if len(numbers) < 3 or any(n is None for n in numbers):
            return None
        axes, begins, ends, *steps = (n or [] for n in numbers)
        if len(axes) != 1 or any(step != 1 for each in steps for step in each):
            return None
        axis = axes[0] % len(shape)
        begin, end, _ = slice(begins[0], ends[0]).indices(shape[axis])
        return cls(axis, begin, max(begin, end))

    def cut(self, value: Any) -> Any:
        """This part of a value, itself if that is all of it."""
        if (self.begin, self.end) == (0, df.shape_of(value)[self.axis]):
            return value
        return relax.op.strided_slice(value, [self.axis], [self.begin], [self.end])


def _numbers(arg: Any) -> list[int] | None:
    """A tuple of numbers known now."""
    if not isinstance(arg, relax.Tuple):
        return None
    values = [getattr(field, "value", field) for field in arg.fields]
    known = all(isinstance(v, (int, tirx.IntImm)) for v in values)
    return [int(v) for v in values] if known else None
