"""Index arithmetic shared by the convolution kernels: normalised dimensions, staging, channels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod
from typing import TypeVar

from tvm_ext.schedules.conv_workload import ConvTransposeWorkload, ConvWorkload
from tvm_ext.schedules.cuts import divisors
from tvm_ext.schedules.workload import Shape

_Workload = TypeVar("_Workload", ConvWorkload, ConvTransposeWorkload)


@dataclass(frozen=True)
class ConvGeometry:
    """A convolution with at least two spatial dimensions, seen by a kernel that tiles the last.

    A 1x1 convolution without padding has no neighbourhood: its positions are flattened into
    one row (`flat`), strided ones after the staging copy has picked the positions that count, and
    those that a producer computes after it has.

    Attributes
    ----------
    spatial, out, kernel, stride, dilation, before : tuple of int
        As the kernel loops over them: after flattening and after staging.
    staged : tuple of int
        Extents of the staged input: padded and subsampled.
    must_stage : bool
        Whether the input can't be read in place.
    """

    spatial: Shape
    out: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    subsample: Shape
    staged: Shape
    flat: bool
    must_stage: bool

    @staticmethod
    def of(w: ConvWorkload) -> ConvGeometry:
        w = lifted(w)
        spatial, out, kernel = w.spatial, w.conv_spatial, w.kernel
        stride, dilation, before, after = w.strides, w.dilation, w.pad_before, w.pad_after
        if pointwise(w):
            positions = prod(out)
            # What is staged row by row: strided positions, or what a producer computes.
            rows = any(s > 1 for s in stride) or w.producer is not None
            return ConvGeometry(
                spatial=spatial if rows else (1, positions),
                out=(1, positions), kernel=(1, 1), stride=(1, 1), dilation=(1, 1),
                before=(0,) * len(spatial) if rows else (0, 0),
                subsample=stride if rows else (1, 1),
                staged=out if rows else (1, positions), flat=True, must_stage=rows,
            )  # fmt: skip
        staged = tuple(
            (o - 1) * s + d * (k - 1) + 1
            for o, s, d, k in zip(out, stride, dilation, kernel, strict=True)
        )
        return ConvGeometry(
            spatial=spatial, out=out, kernel=kernel, stride=stride, dilation=dilation,
            before=before, subsample=(1,) * len(spatial), staged=staged, flat=False,
            must_stage=any(before) or any(after),
        )  # fmt: skip


def lifting(spatial: Shape) -> tuple[Shape, Shape]:
    """Ones and zeros to put before a one-dimensional shape."""
    missing = max(0, 2 - len(spatial))
    return (1,) * missing, (0,) * missing


def lifted(w: _Workload) -> _Workload:
    """The same convolution with at least two spatial dimensions; its epilogue stays as it is."""
    ones, zeros = lifting(w.spatial)
    if not ones:
        return w
    extra = {"output_padding": w.output_padding} if isinstance(w, ConvTransposeWorkload) else {}
    padding = {"pad_before": w.pad_before, "pad_after": w.pad_after, **extra}
    others = {
        "spatial": w.spatial, "kernel": w.kernel, "strides": w.strides, "dilation": w.dilation,
    }  # fmt: skip
    return replace(
        w,
        **{name: zeros + value for name, value in padding.items()},
        **{name: ones + value for name, value in others.items()},
    )


def pointwise(w: ConvWorkload) -> bool:
    """Whether the positions can be seen as one row: none reads another, nor do the operands.

    An operand that is broadcast over some spatial dimensions only tells the positions' rows from
    their columns, and so does a pool stage.
    """
    padded = any(w.pad_before) or any(w.pad_after)
    whole = (1, prod(w.conv_spatial))
    return (
        prod(w.kernel) == 1
        and not padded
        and w.pool is None
        and all(prod(operand.seen[2:]) in whole for operand in w.epilogue.operands)
    )


def channel_step(group_channels: int, block: int, limit: int = 16) -> int:
    """Input channels that the inner reduction loop unrolls: they must not cross a lane block."""
    if block:
        return gcd(group_channels, block)
    return divisors(group_channels, limit)[-1]
