"""What a matrix product has to compute: strided views of its operands and of its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from tvm_ext.schedules.epilogue import Epilogue
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.workload import NormalizeWorkload, PoolWorkload, Shape, operand_bytes
from tvm_ext.sparsity import Sparsity


@dataclass(frozen=True)
class MatmulWorkload:
    """(*batch, m, k) x (*batch, k, n), of strided views of the arguments; `of` makes one.

    Attributes
    ----------
    lhs, rhs, out : StridedView
        Of shapes (*batch, m, k), (*batch, k, n) and (*batch, m, n); the stride is 0 along batch
        dimensions in which an operand is broadcast. The epilogue's operands are broadcast against
        the shape of `out`.
    lhs_shape, rhs_shape, out_shape : tuple of int
        Shapes of the arguments, which the views are of.
    packed : bool
        Whether the right side is a constant weight.
    producer : NormalizeWorkload, PoolWorkload, MatmulWorkload or None
        What computes the left side; one kernel computes both, takes the producer's inputs in place
        of the left side, and its weights after the product's.
    sparsity : Sparsity or None
        Counts of what isn't zero in that weight, seen as (n, k); without it hardly any is zero.
    """

    lhs: StridedView
    rhs: StridedView
    out: StridedView
    lhs_shape: Shape
    rhs_shape: Shape
    out_shape: Shape
    packed: bool = False
    dtype: str = "float32"
    epilogue: Epilogue = field(default_factory=Epilogue)
    producer: NormalizeWorkload | PoolWorkload | MatmulWorkload | None = None
    sparsity: Sparsity | None = None

    @classmethod
    def of(
        cls, lhs_shape: Shape, rhs_shape: Shape, out_shape: Shape = (), *,
        lhs: StridedView | None = None, rhs: StridedView | None = None,
        out: StridedView | None = None, **fields: Any,
    ) -> MatmulWorkload:  # fmt: skip
        """The product of two tensors, or of the views of them that are given, as numpy's matmul.

        Without `out` the result is stored contiguously, in a tensor of `out_shape` if given.
        """
        left = lhs or StridedView.contiguous(lhs_shape)
        right = rhs or StridedView.contiguous(rhs_shape)
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        shape = (*batch, left.shape[-2], right.shape[-1])
        return cls(
            left.broadcast((*batch, *left.shape[-2:])),
            right.broadcast((*batch, *right.shape[-2:])),
            out or StridedView.contiguous(shape),
            lhs_shape, rhs_shape, out_shape or shape, **fields,
        )  # fmt: skip

    @property
    def batch(self) -> Shape:
        return self.out.shape[:-2]

    @property
    def m(self) -> int:
        return self.out.shape[-2]

    @property
    def n(self) -> int:
        return self.out.shape[-1]

    @property
    def k(self) -> int:
        return self.lhs.shape[-1]

    @property
    def macs(self) -> int:
        return prod(self.out.shape) * self.k

    @property
    def source_bytes(self) -> int:
        """Bytes that are read."""
        return self.bytes - _view_bytes(self.out)

    @property
    def flops(self) -> int:
        own = 2 * self.macs + prod(self.out.shape) * self.epilogue.flops
        return own + (self.producer.flops if self.producer else 0)

    @property
    def weight_bytes(self) -> int:
        return _view_bytes(self.rhs)

    @property
    def bytes(self) -> int:
        # What a producer hands over is in no memory.
        left = self.producer.source_bytes if self.producer else _view_bytes(self.lhs)
        data = left + _view_bytes(self.out)
        return data + self.weight_bytes + operand_bytes(self.epilogue)


def _view_bytes(view: StridedView) -> int:
    """Bytes of the elements that a view of float32 values touches."""
    return 4 * prod(n for n, stride in zip(view.shape, view.strides, strict=True) if stride)
