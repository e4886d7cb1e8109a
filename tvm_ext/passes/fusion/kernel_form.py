"""What one kernel computes for a group of operators, if one kernel can.

A kernel is at most one anchor (convolution, product, pool, normalisation), with elementwise steps
on its result. Whatever only moves elements isn't computed at all: it becomes the strides with which
the kernel reads an operand or stores its result. Steps are evaluated at the anchor's positions
(without one, at the result's), so moves are pushed towards what the group reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import scalar_name
from tvm_ext.passes.fusion.capabilities import takes_pool
from tvm_ext.passes.fusion.group_reader import GroupReader
from tvm_ext.passes.fusion.kernel_parts import KernelForm, NoKernel
from tvm_ext.passes.fusion.moves import moves_of

Pairs = Sequence[tuple[Any, Any]]


def is_light(expr: Any) -> bool:
    """Whether an operator needs no kernel of its own: elementwise, or it moves elements."""
    return bool(scalar_name(expr)) or moves_of(expr) is not None


def kernel_form(pairs: Pairs) -> KernelForm:
    """The kernel for a group of operators.

    Parameters
    ----------
    pairs : sequence of (Var, expression)
        The group's bindings in order, the last its result.

    Raises
    ------
    NoKernel
        With the reason.
    """
    anchors = [(var, expr) for var, expr in pairs if not is_light(expr)]
    pool = None
    two = len(anchors) == 2 and anchors[1][0].same_as(pairs[-1][0])
    if two and takes_pool(anchors[0][1], anchors[1][1]):
        pool = anchors.pop()[1]
        pairs = pairs[:-1]
        if not pool.args[0].same_as(pairs[-1][0]):
            raise NoKernel("the pool reads something else")
    if len(anchors) > 1:
        names = " and ".join(df.op_name(expr).removeprefix("relax.") for _, expr in anchors)
        raise NoKernel(f"{names} have kernels of their own")
    return GroupReader(pairs, anchors[0] if anchors else None).form(pool)
