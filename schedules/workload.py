"""What has to be computed: one frozen, hashable description for each kind of layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from tvm_ext.schedules.epilogue import Epilogue

Shape = tuple[int, ...]


class _Convolution:
    """What follows alike from the fields of a convolution and of a transposed one."""

    batch: int
    in_channels: int
    out_channels: int
    spatial: Shape
    out_spatial: Shape
    macs: int
    weight_bytes: int
    epilogue: Epilogue

    @property
    def in_shape(self) -> Shape:
        return (self.batch, self.in_channels, *self.spatial)

    @property
    def out_shape(self) -> Shape:
        return (self.batch, self.out_channels, *self.out_spatial)

    @property
    def flops(self) -> int:
        return 2 * self.macs + prod(self.out_shape) * self.epilogue.flops

    @property
    def bytes(self) -> int:
        """Bytes that must move at least once: inputs, weights, operands, output."""
        return (
            4 * (prod(self.in_shape) + prod(self.out_shape))
            + self.weight_bytes
            + operand_bytes(self.epilogue)
        )


@dataclass(frozen=True)
class ConvWorkload(_Convolution):
    """A 1-, 2- or 3-dimensional convolution (cross-correlation), N C spatial, with its epilogue.

    `spatial`, `kernel`, `strides`, `pad_before`, `pad_after` and `dilation` have one entry for each
    spatial dimension. Weights are (out_channels, in_channels / groups, *kernel).
    """

    batch: int
    in_channels: int
    spatial: Shape
    out_channels: int
    kernel: Shape
    strides: Shape
    pad_before: Shape
    pad_after: Shape
    dilation: Shape
    groups: int = 1
    dtype: str = "float32"
    epilogue: Epilogue = field(default_factory=Epilogue)

    @property
    def out_spatial(self) -> Shape:
        return tuple(
            (n + before + after - d * (k - 1) - 1) // s + 1
            for n, before, after, d, k, s in zip(
                self.spatial, self.pad_before, self.pad_after, self.dilation, self.kernel,
                self.strides, strict=True,
            )
        )  # fmt: skip

    @property
    def macs(self) -> int:
        return prod(self.out_shape) * (self.in_channels // self.groups) * prod(self.kernel)

    @property
    def weight_bytes(self) -> int:
        return 4 * self.out_channels * (self.in_channels // self.groups) * prod(self.kernel)

    @property
    def depthwise(self) -> bool:
        return self.groups == self.in_channels == self.out_channels and self.groups > 1


@dataclass(frozen=True)
class ConvTransposeWorkload(_Convolution):
    """A 1-, 2- or 3-dimensional transposed convolution, N C spatial, with its epilogue.

    Input position i adds to output position i * stride - pad_before + tap * dilation. Weights are
    (in_channels, out_channels / groups, *kernel).
    """

    batch: int
    in_channels: int
    spatial: Shape
    out_channels: int
    kernel: Shape
    strides: Shape
    pad_before: Shape
    pad_after: Shape
    dilation: Shape
    output_padding: Shape
    groups: int = 1
    dtype: str = "float32"
    epilogue: Epilogue = field(default_factory=Epilogue)

    @property
    def out_spatial(self) -> Shape:
        return tuple(
            (n - 1) * s - before - after + d * (k - 1) + extra + 1
            for n, s, before, after, d, k, extra in zip(
                self.spatial, self.strides, self.pad_before, self.pad_after, self.dilation,
                self.kernel, self.output_padding, strict=True,
            )
        )  # fmt: skip

    @property
    def macs(self) -> int:
        """Every input element meets every tap, those that land in the padding included."""
        return prod(self.in_shape) * (self.out_channels // self.groups) * prod(self.kernel)

    @property
    def weight_bytes(self) -> int:
        return 4 * self.in_channels * (self.out_channels // self.groups) * prod(self.kernel)


@dataclass(frozen=True)
class MatmulWorkload:
    """(*batch, m, k) x (*batch_rhs, k, n); `packed` when the right side is a constant weight.

    With `packed` the batch dimensions are already folded into m.
    `transpose_b` when the right side is stored as (n, k).
    `lhs_shape` and `rhs_shape` are the tensors' own shapes, where `batch` has folded them.
    """

    batch: Shape
    m: int
    n: int
    k: int
    packed: bool
    transpose_b: bool = False
    out_shape: Shape = ()
    dtype: str = "float32"
    epilogue: Epilogue = field(default_factory=Epilogue)
    lhs_shape: Shape = ()
    rhs_shape: Shape = ()

    @property
    def macs(self) -> int:
        return prod(self.batch) * self.m * self.n * self.k

    @property
    def flops(self) -> int:
        return 2 * self.macs + prod(self.batch) * self.m * self.n * self.epilogue.flops

    @property
    def weight_bytes(self) -> int:
        return 4 * prod(self.batch) * self.k * self.n

    @property
    def bytes(self) -> int:
        out = prod(self.batch) * self.m * self.n
        left = prod(self.batch) * self.m * self.k
        return 4 * (out + left) + self.weight_bytes + operand_bytes(self.epilogue)


@dataclass(frozen=True)
class PoolWorkload:
    """Max or average pooling over N C spatial; a global pool has the kernel of its input."""

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

    @property
    def flops(self) -> int:
        return prod(self.out_shape) * (prod(self.kernel) + self.epilogue.flops)

    @property
    def bytes(self) -> int:
        return 4 * (prod(self.shape) + prod(self.out_shape)) + operand_bytes(self.epilogue)


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

    @property
    def flops(self) -> int:
        return self.rows * self.columns * (25 if "softmax" in self.kind else 8)

    @property
    def bytes(self) -> int:
        return 8 * self.rows * self.columns + operand_bytes(self.epilogue)


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


def operand_bytes(epilogue: Epilogue) -> int:
    """Bytes that an epilogue's operands add to a kernel's traffic."""
    return 4 * sum(prod(operand.shape) for operand in epilogue.operands)


@dataclass(frozen=True)
class TransposeWorkload:
    """A permutation of dimensions that moves data; `axes` as numpy's transpose takes them."""

    shape: Shape
    axes: tuple[int, ...]
    dtype: str = "float32"

    @property
    def out_shape(self) -> Shape:
        return tuple(self.shape[axis] for axis in self.axes)

    @property
    def flops(self) -> int:
        return 0

    @property
    def bytes(self) -> int:
        return 8 * prod(self.shape)
