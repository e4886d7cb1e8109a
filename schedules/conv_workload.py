"""What has to be computed in a convolution, and in a transposed one."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from tvm_ext.schedules.epilogue import Epilogue
from tvm_ext.schedules.workload import PoolWorkload, Shape, operand_bytes, window_counts
from tvm_ext.sparsity import Sparsity


@dataclass(frozen=True)
class PoolStage:
    """A pool that the kernel of a convolution computes from its finished output (no dilation).

    `out_spatial` says whether the last windows may hang over the end, as ceil mode lets them.
    """

    kind: str
    kernel: Shape
    strides: Shape
    pad_before: Shape
    pad_after: Shape
    out_spatial: Shape
    count_include_pad: bool = False


@dataclass(frozen=True)
class ConvGeometry:
    """What all convolutions have alike: the subclasses say what `out_spatial` is.

    `spatial` and all that follows it but `out_channels` have an entry for each spatial dimension.
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

    @property
    def in_shape(self) -> Shape:
        return (self.batch, self.in_channels, *self.spatial)

    @property
    def out_shape(self) -> Shape:
        return (self.batch, self.out_channels, *self.out_spatial)


@dataclass(frozen=True)
class _FloatConvolution(ConvGeometry):
    """What a convolution and a transposed one of floats have alike; both have an epilogue, too."""

    @property
    def bytes(self) -> int:
        """Bytes that must move at least once: inputs, weights, operands, output."""
        return (
            4 * (prod(self.in_shape) + prod(self.out_shape))
            + self.weight_bytes
            + operand_bytes(self.epilogue)
        )


@dataclass(frozen=True)
class ConvWorkload(_FloatConvolution):
    """A 1-, 2- or 3-dimensional convolution (cross-correlation), N C spatial, with its epilogue.

    Weights are (out_channels, in_channels / groups, *kernel). With a `pool` stage the output is
    the pooled one; the epilogue, whose operands have the convolution's own shape, comes before it.

    The `prologue` makes from each input element (value 0) the one that is convolved; padding stays
    zero. Its operands are constants of shape (1, in_channels, 1, ...), weights that follow W.

    The `producer` (a convolution, a pool or an enlargement) computes what this one reads, after its
    own epilogue: one kernel computes both, takes the producer's input, and its weights after W.

    With a `shuffle` of several groups the output's channels are shuffled, as in ShuffleNet: cut in
    so many groups, then the first of each, the second of each, and so on. The epilogue comes first.

    The `sparsity` counts the weights that aren't zero; without it hardly any is.
    """

    groups: int = 1
    dtype: str = "float32"
    epilogue: Epilogue = field(default_factory=Epilogue)
    pool: PoolStage | None = None
    prologue: Epilogue | None = None
    producer: Any = None
    shuffle: int = 1
    sparsity: Sparsity | None = None

    @property
    def source_shape(self) -> Shape:
        """Shape of what the kernel reads."""
        if self.producer is None:
            return self.in_shape
        own = getattr(self.producer, "source_shape", None)
        return self.producer.shape if own is None else own

    @property
    def conv_spatial(self) -> Shape:
        """Extents of the convolution's own output."""
        return window_counts(
            self.spatial, self.kernel, self.strides, self.pad_before, self.pad_after, self.dilation
        )

    @property
    def conv_shape(self) -> Shape:
        """Shape of the convolution's own output."""
        return (self.batch, self.out_channels, *self.conv_spatial)

    @property
    def out_spatial(self) -> Shape:
        return self.pool.out_spatial if self.pool else self.conv_spatial

    @property
    def pooling(self) -> PoolWorkload | None:
        """The pool stage as a workload of its own."""
        if self.pool is None:
            return None
        p = self.pool
        return PoolWorkload(
            p.kind, self.conv_shape, p.kernel, p.strides, p.pad_before, p.pad_after,
            (1,) * len(p.kernel), self.out_shape, p.count_include_pad, self.dtype,
        )  # fmt: skip

    @property
    def macs(self) -> int:
        return prod(self.conv_shape) * (self.in_channels // self.groups) * prod(self.kernel)

    @property
    def flops(self) -> int:
        own = 2 * self.macs + prod(self.conv_shape) * self.epilogue.flops
        before = prod(self.in_shape) * self.prologue.flops if self.prologue else 0
        before += self.producer.flops if self.producer else 0
        return before + own + (self.pooling.flops if self.pooling else 0)

    @property
    def bytes(self) -> int:
        own = super().bytes + (operand_bytes(self.prologue) if self.prologue else 0)
        if self.producer is None:
            return own
        # What is between the two is in no memory.
        return own + self.producer.bytes - 8 * prod(self.in_shape)

    @property
    def weight_bytes(self) -> int:
        return 4 * self.out_channels * (self.in_channels // self.groups) * prod(self.kernel)

    def stored_channel(self, channel: Any) -> Any:
        """Where in the output a channel of the epilogue's result is, an int or an expression."""
        if self.shuffle == 1:
            return channel
        each = self.out_channels // self.shuffle
        return channel % each * self.shuffle + channel // each

    @property
    def depthwise(self) -> bool:
        return self.groups == self.in_channels == self.out_channels and self.groups > 1


@dataclass(frozen=True)
class ConvTransposeWorkload(_FloatConvolution):
    """A 1-, 2- or 3-dimensional transposed convolution, N C spatial, with its epilogue.

    Input position i adds to output position i * stride - pad_before + tap * dilation. Weights are
    (in_channels, out_channels / groups, *kernel).
    """

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
    def flops(self) -> int:
        return 2 * self.macs + prod(self.out_shape) * self.epilogue.flops

    @property
    def weight_bytes(self) -> int:
        return 4 * self.in_channels * (self.out_channels // self.groups) * prod(self.kernel)
