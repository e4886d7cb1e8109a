"""Tensors as strided views of a buffer: reshapes, transpositions and slices as index arithmetic.

The same algebra as NumPy's views. What has no strides (a reshape that would need a copy) has no
view; the caller then keeps the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True)
class StridedView:
    """A tensor whose element (i, j, ...) is `offset + i * strides[0] + j * strides[1] + ...`.

    Attributes
    ----------
    shape : tuple of int
    strides : tuple of int
        In elements; 0 along broadcast dimensions, negative where the order is reversed.
    offset : int
        Of the first element, in elements.
    """

    shape: Shape
    strides: Shape
    offset: int = 0

    @classmethod
    def contiguous(cls, shape: Sequence[int]) -> StridedView:
        """All of a buffer, in row-major order."""
        return cls(tuple(shape), _row_major(shape))

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are a run in row-major order, from wherever it starts."""
        pairs = zip(self.shape, self.strides, _row_major(self.shape), strict=True)
        return all(n == 1 or own == packed for n, own, packed in pairs)

    def permute(self, axes: Sequence[int]) -> StridedView:
        """The dimensions in another order, as numpy's transpose takes it."""
        shape = tuple(self.shape[a] for a in axes)
        return StridedView(shape, tuple(self.strides[a] for a in axes), self.offset)

    def slice(self, axis: int, begin: int, count: int, step: int = 1) -> StridedView:
        """`count` elements along `axis`, from `begin` on, `step` apart (backwards if negative)."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + begin * strides[axis]
        shape[axis], strides[axis] = count, strides[axis] * step
        return StridedView(tuple(shape), tuple(strides), offset)

    def broadcast(self, shape: Sequence[int]) -> StridedView:
        """Repeated along leading dimensions and those of one element."""
        lead = len(shape) - len(self.shape)
        own = (1,) * lead + self.shape
        strides = (0,) * lead + self.strides
        steps = (s if n == m else 0 for n, m, s in zip(own, shape, strides, strict=True))
        return StridedView(tuple(shape), tuple(steps), self.offset)

    def repeat(self, factors: Sequence[int]) -> StridedView | None:
        """Each element `factors` times in a row; None unless all of those dimensions are alike."""
        moving = zip(self.shape, self.strides, factors, strict=True)
        if any(f != 1 and n != 1 and stride for n, stride, f in moving):
            return None
        shape = tuple(n * f for n, f in zip(self.shape, factors, strict=True))
        strides = (s if f == 1 else 0 for s, f in zip(self.strides, factors, strict=True))
        return StridedView(shape, tuple(strides), self.offset)

    def reshape(self, shape: Sequence[int]) -> StridedView | None:
        """The elements in the same order under another shape; None where that takes a copy."""
        if prod(self.shape) == 0 or prod(shape) == 0:
            return StridedView.contiguous(shape) if prod(self.shape) == prod(shape) else None
        # Runs of dimensions that one stride can walk, outermost first, as (extent, stride).
        runs: list[tuple[int, int]] = []
        for n, stride in zip(self.shape, self.strides, strict=True):
            if n == 1:
                continue
            if runs and runs[-1][1] == n * stride:
                runs[-1] = (runs[-1][0] * n, stride)
            else:
                runs.append((n, stride))
        strides = [0] * len(shape)
        left = 1
        for axis in reversed(range(len(shape))):
            n = shape[axis]
            if n == 1:
                continue
            if left == 1:
                if not runs:
                    return None
                left, stride = runs.pop()
            if left % n:
                return None
            strides[axis] = stride
            left, stride = left // n, stride * n
        if left != 1 or runs:
            return None
        return StridedView(tuple(shape), tuple(strides), self.offset)

    def index(self, at: Sequence[Any]) -> Any:
        """Where an element lies, given integers or expressions."""
        total: Any = self.offset
        for i, n, stride in zip(at, self.shape, self.strides, strict=True):
            if stride and n != 1:
                total = total + i * stride
        return total


def _row_major(shape: Sequence[int]) -> Shape:
    return tuple(accumulate(reversed(shape[1:]), mul, initial=1))[::-1] if shape else ()
