"""Channel shuffles behind a convolution, which its kernel stores instead of a copy making them.

ShuffleNet (Zhang et al., 2018) cuts the channels in groups, transposes (groups, channels of each),
and flattens them again, so that the next convolution's groups see all groups of this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir import GenericConst

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.moves import Move, follow
from tvm_ext.schedules.cuts import divisors
from tvm_ext.schedules.strided_view import StridedView

_CONVOLUTIONS = frozenset(f"relax.nn.conv{n}d" for n in (1, 2, 3))


def takes_shuffle(expr: Any) -> bool:
    """Whether an operator's kernel can store its channels shuffled."""
    if df.op_name(expr) not in _CONVOLUTIONS or df.dtype_of(expr) != "float32":
        return False
    return str(expr.attrs.data_layout).startswith("NC") and isinstance(expr.args[1], GenericConst)


def shuffled(shape: Sequence[int], back: Sequence[Move]) -> StridedView | None:
    """Where the elements of a result of `shape` are stored, if its channels are shuffled.

    Parameters
    ----------
    shape : sequence of int
        N, C, spatial, of the result and of what is stored.
    back : sequence of Move
        From what is stored to the result.

    Returns
    -------
    StridedView or None
        At positions (N, groups, C / groups, spatial); None of any other order.
    """
    batch, channels, *spatial = shape
    for groups in divisors(channels)[1:-1]:
        cut = ("reshape", (batch, groups, channels // groups, *spatial))
        view = follow(StridedView.contiguous(shape), (*back, cut))
        if view is not None:
            turned = view.permute((0, 2, 1, *range(3, len(view.shape))))
            return view if turned.is_contiguous else None
    return None
