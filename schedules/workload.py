"""What has to be computed: one frozen, hashable description for each kind of layer.

Convolutions are in `tvm_ext.schedules.conv_workload`, matrix products in `matmul_workload`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from tvm_ext.schedules.epilogue import Epilogue, Operand
from tvm_ext.schedules.stages import stages
from tvm_ext.schedules.window import covers

Shape = tuple[int, ...]


def operand_bytes(epilogue: Epilogue) -> int:
    """Bytes that an epilogue's operands add to a kernel's traffic."""
    return 4 * sum(prod(operand.shape) for operand in epilogue.operands)


def kernel_operands(workload: Any) -> tuple[Operand, ...]:
    """The operands of all epilogues of a workload, those of its producer first."""
    epilogues = (getattr(stage, "epilogue", None) for stage in stages(workload))
    return tuple(x for epilogue in epilogues if epilogue is not None for x in epilogue.operands)


def window_counts(
    spatial: Shape, kernel: Shape, strides: Shape, pad_before: Shape, pad_after: Shape,
    dilation: Shape,
) -> Shape:  # fmt: skip
    """How many windows lie along each spatial dimension, none of which hangs over the padding."""
    return tuple(
        (n + before + after - d * (k - 1) - 1) // s + 1
        for n, k, s, before, after, d in zip(
            spatial, kernel, strides, pad_before, pad_after, dilation, strict=True
        )
    )


@dataclass(frozen=True)
class PoolWorkload:
    """Max or average pooling over N C spatial; a global pool has the kernel of its input.

    The `prologue` makes from each input element (value 0) the one that is pooled, and has no
    operands; padding stays as it is.
    """

    kind: str
    shape: Shape
    kernel: Shape
    strides: Shape
    pad_before: Shape
    pad_after: Shape
    dilation: Shape
    out_shape: Shape
    count_include_pad: bool = False
    dtype: str = "float32"
    epilogue: Epilogue = field(default_factory=Epilogue)
    prologue: Epilogue | None = None

    @property
    def flops(self) -> int:
        return prod(self.out_shape) * (
            prod(self.kernel) + self.prologue_flops + self.epilogue.flops
        )

    @property
    def prologue_flops(self) -> int:
        """For each element of the output: a kernel pools down the rows before it does along one."""
        return prod(self.kernel[:-1]) * self.prologue.flops if self.prologue else 0

    @property
    def is_global(self) -> bool:
        """Whether the only result is that of all positions, and of nothing else."""
        counted = self.kind == "avg" and self.count_include_pad
        return prod(self.out_shape[2:]) == 1 and covers(
            self.shape[2:], self.kernel, self.pad_before, self.pad_after, self.dilation, counted
        )

    @property
    def source_bytes(self) -> int:
        """Bytes that are read."""
        return 4 * prod(self.shape) + operand_bytes(self.epilogue)

    @property
    def bytes(self) -> int:
        return self.source_bytes + 4 * prod(self.out_shape)


@dataclass(frozen=True)
class ElementwiseWorkload:
    """A chain of scalar operations over broadcast operands; the whole of it is the epilogue."""

    shape: Shape
    dtype: str
    epilogue: Epilogue

    @property
    def out_shape(self) -> Shape:
        return self.shape

    @property
    def flops(self) -> int:
        return prod(self.shape) * self.epilogue.flops

    @property
    def bytes(self) -> int:
        return 4 * prod(self.shape) + operand_bytes(self.epilogue)


@dataclass(frozen=True)
class ConcatWorkload:
    """Concatenation of tensors along one axis."""

    shapes: tuple[Shape, ...]
    axis: int
    dtype: str

    @property
    def out_shape(self) -> Shape:
        total = sum(s[self.axis] for s in self.shapes)
        first = self.shapes[0]
        return (*first[: self.axis], total, *first[self.axis + 1 :])

    @property
    def flops(self) -> int:
        return 0

    @property
    def bytes(self) -> int:
        return 8 * prod(self.out_shape)


@dataclass(frozen=True)
class NormalizeWorkload:
    """Softmax, log-softmax, layer norm or RMS norm over the last axis of (rows, columns).

    `scale` and `shift` say whether the weights gamma and beta follow the data.

    The `producer`, a matrix product or a pool, computes the data; one kernel computes both, takes
    the producer's inputs, and its weights after gamma and beta.
    """

    kind: str
    rows: int
    columns: int
    out_shape: Shape
    epsilon: float = 0.0
    scale: bool = False
    shift: bool = False
    dtype: str = "float32"
    epilogue: Epilogue = field(default_factory=Epilogue)
    # A PoolWorkload, or a MatmulWorkload, whose file imports this one.
    producer: Any = None

    @property
    def flops(self) -> int:
        own = self.rows * self.columns * (15 if "softmax" in self.kind else 8)
        return own + (self.producer.flops if self.producer else 0)

    @property
    def source_bytes(self) -> int:
        """Bytes that are read."""
        # What a producer hands over is in no memory.
        data = self.producer.source_bytes if self.producer else 4 * self.rows * self.columns
        return data + operand_bytes(self.epilogue)

    @property
    def bytes(self) -> int:
        return self.source_bytes + 4 * self.rows * self.columns


@dataclass(frozen=True)
class ViewWorkload:
    """The same bytes under another shape: reshape, flatten, squeeze, expand_dims."""

    in_shape: Shape
    out_shape: Shape
    dtype: str

    @property
    def flops(self) -> int:
        return 0

    @property
    def bytes(self) -> int:
        return 0


@dataclass(frozen=True)
class GenericWorkload:
    """Anything else: TVM's own legalisation of the operators, under our default schedule.

    `key` identifies the group function by structure.
    """

    key: int
    ops: tuple[str, ...]
    out_shapes: tuple[Shape, ...]
    in_bytes: int
    out_bytes: int

    @property
    def flops(self) -> int:
        return sum(prod(shape) for shape in self.out_shapes)

    @property
    def bytes(self) -> int:
        return self.in_bytes + self.out_bytes


@dataclass(frozen=True)
class TransposeWorkload:
    """A permutation of dimensions that moves data; `axes` as numpy's transpose takes them.

    `source` is the shape in which the argument comes, of as many elements; empty for `shape`.
    """

    shape: Shape
    axes: tuple[int, ...]
    dtype: str = "float32"
    source: Shape = ()

    @property
    def out_shape(self) -> Shape:
        return tuple(self.shape[axis] for axis in self.axes)

    @property
    def flops(self) -> int:
        return 0

    @property
    def bytes(self) -> int:
        return 8 * prod(self.shape)
