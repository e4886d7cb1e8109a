"""What one kernel computes for a group of operators, if one kernel can.

A kernel is at most one anchor (convolution, product, pool, normalisation), with elementwise steps
on its result. Whatever only moves elements isn't computed at all: it becomes the strides with which
the kernel reads an operand or stores its result. Steps are evaluated at the anchor's positions
(without one, at the result's), so moves are pushed towards what the group reads.

An anchor's first input may be made by a form of its own, the producer, where the kernel can compute
it tile by tile without computing anything twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import scalar_name
from tvm_ext.passes.fusion import row_chain
from tvm_ext.passes.fusion.capabilities import takes_pool
from tvm_ext.passes.fusion.conv_chain import is_enlargement
from tvm_ext.passes.fusion.group_reader import GroupReader
from tvm_ext.passes.fusion.kernel_parts import KernelForm, NoKernel, Source
from tvm_ext.passes.fusion.moves import moves_of
from tvm_ext.passes.fusion.producers import producer_refusal, unfinished
from tvm_ext.schedules.epilogue import Epilogue
from tvm_ext.schedules.strided_view import StridedView

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
    form = _read(pairs)
    if reason := unfinished(form):
        raise NoKernel(reason)
    return form


def _read(pairs: Pairs) -> KernelForm:
    """The form of a group that may go on as the producer of another."""
    anchors = [(var, expr) for var, expr in pairs if not is_light(expr)]
    pool = None
    behind = len(anchors) > 1 and anchors[-1][0].same_as(pairs[-1][0])
    if behind and takes_pool(anchors[-2][1], anchors[-1][1]):
        pool = anchors.pop()[1]
        pairs = pairs[:-1]
        if not pool.args[0].same_as(pairs[-1][0]):
            raise NoKernel("the pool reads something else")
    if anchors:
        inner, outer = _cut_before(pairs, anchors[-1])
        if inner:
            form = GroupReader(outer, anchors[-1]).form(pool)
            producer = _producer(inner, anchors[-1][1])
            if reason := producer_refusal(form, producer):
                raise NoKernel(reason)
            return replace(form, producer=producer)
    if len(anchors) > 1:
        names = " and ".join(df.op_name(expr).removeprefix("relax.") for _, expr in anchors)
        raise NoKernel(f"{names} have kernels of their own")
    return GroupReader(pairs, anchors[0] if anchors else None).form(pool)


def _producer(pairs: Pairs, reader: Any) -> KernelForm:
    """The form of what makes a reader's input; an enlargement isn't only a move there."""
    if len(pairs) > 1 or not is_enlargement(pairs[0][1]):
        return _read(_without_views(pairs, reader))
    var, call = pairs[0]
    source = Source(call.args[0], StridedView.contiguous(df.shape_of(call.args[0])))
    shape = df.shape_of(var)
    return KernelForm((var, call), (source,), Epilogue(), (), StridedView.contiguous(shape), shape)


def _without_views(pairs: Pairs, reader: Any) -> Pairs:
    """What makes rows for a reader, which takes them under whatever shape."""
    anchor = next((expr for _, expr in reversed(pairs) if not is_light(expr)), None)
    if anchor is not None and row_chain.computes(reader, anchor):
        while df.is_view(pairs[-1][1]):
            pairs = pairs[:-1]
    return pairs


def _cut_before(pairs: Pairs, anchor: tuple[Any, Any]) -> tuple[Pairs, Pairs]:
    """What makes an anchor's first input, and the rest; nothing and all if others read it, too."""
    exprs = dict(pairs)
    result = df.tensors(anchor[1])[0]
    inner, stack = set(), [result]
    while stack:
        var = stack.pop()
        if var in exprs and var not in inner:
            inner.add(var)
            stack.extend(df.free_vars(exprs[var]))
    outer = [(var, expr) for var, expr in pairs if var not in inner]
    others = [arg for _, expr in outer if expr is not anchor[1] for arg in df.free_vars(expr)]
    others += [var for arg in df.tensors(anchor[1])[1:] for var in df.free_vars(arg)]
    heavy = any(not is_light(exprs[var]) or is_enlargement(exprs[var]) for var in inner)
    if inner.intersection(others) or not heavy:
        return [], pairs
    return [(var, expr) for var, expr in pairs if var in inner], outer
