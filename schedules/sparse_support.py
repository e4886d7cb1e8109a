"""What every kernel wants that skips zeros of a convolution's weights."""

from __future__ import annotations

from tvm_ext.schedules.base import YES, Support, refuse
from tvm_ext.schedules.conv_workload import ConvWorkload


def supports_zeros(w: ConvWorkload) -> Support:
    """Whether a convolution is of float32 and its weights have zeros."""
    if w.dtype != "float32":
        return refuse(f"dtype {w.dtype}; only float32")
    return YES if w.sparsity is not None else refuse("hardly any weight is zero")
