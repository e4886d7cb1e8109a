"""How a kernel reads a tensor that the graph moves before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tvm_ext.passes.fusion.moves import Move, follow, repeated
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.strided_view import StridedView

Shape = tuple[int, ...]


def read_through(own: Shape, moves: Sequence[Move], at: Shape, dtype: str) -> Operand | None:
    """A tensor of shape `own` as an operand at positions of shape `at`.

    `moves` lead from the one shape to the other; None where they leave no strides, and aren't
    repetitions alone.
    """
    view = follow(StridedView.contiguous(own), moves)
    if view is None:
        enlarged = repeated(own, moves)
        return Operand(enlarged[0], dtype, repeat=enlarged[1]) if enlarged else None
    shape = tuple(n if s else 1 for n, s in zip(view.shape, view.strides, strict=True))
    plain = StridedView.contiguous(shape).broadcast(at)
    same = view.offset == 0 and prod(shape) == prod(own) and _equal(view, plain)
    return Operand(shape, dtype) if same else Operand(shape, dtype, view, prod(own))


def _equal(a: StridedView, b: StridedView) -> bool:
    """Whether two views of one shape read the same elements."""
    strides = zip(a.shape, a.strides, b.strides, strict=True)
    return a.offset == b.offset and all(n == 1 or x == y for n, x, y in strides)
