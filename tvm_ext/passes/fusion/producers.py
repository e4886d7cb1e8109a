"""Which operators one kernel goes through tile by tile, without computing anything twice."""

from __future__ import annotations

from typing import Any

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion import conv_chain, row_chain
from tvm_ext.passes.fusion.attention_chain import (
    attention_refusal,
    has_rows,
    is_computed_product,
    is_softmax,
)
from tvm_ext.passes.fusion.kernel_parts import KernelForm

_NORMS = frozenset(("relax.nn.layer_norm", "relax.nn.rms_norm"))


def takes_producer(expr: Any, producer: Any) -> bool:
    """Whether an operator's kernel may compute another one's result tile by tile as it reads."""
    if conv_chain.computes(expr, producer) or row_chain.computes(expr, producer):
        return True
    if df.op_name(producer) in _NORMS:
        return has_rows(producer) and row_chain.has_constant_right(expr)
    if is_softmax(producer):
        return is_computed_product(expr)
    return is_softmax(expr) and is_computed_product(producer)


def producer_refusal(form: KernelForm, producer: KernelForm) -> str:
    """Why a kernel can't compute its first input itself; an empty string if it can."""
    assert form.anchor is not None
    call, before = form.anchor[1], producer.anchor[1] if producer.anchor else None
    if before is None or not takes_producer(call, before):
        anchors = [call] if before is None else [before, call]
        names = " and ".join(df.op_name(x).removeprefix("relax.") for x in anchors)
        return f"{names} have kernels of their own"
    if df.op_name(call) == "relax.nn.conv2d":
        return conv_chain.refusal(form, producer)
    if is_softmax(before):
        return attention_refusal(form, producer)
    if row_chain.computes(call, before):
        return row_chain.refusal(form, producer)
    if form.prologue or producer.prologue or producer.pool or producer.producer:
        return "one of the two kernels has steps before it, a pool or a producer"
    return ""


def unfinished(form: KernelForm) -> str:
    """Why a form with a producer is only the beginning of a kernel; an empty string if it isn't."""
    if form.producer is None or form.anchor is None or form.producer.anchor is None:
        return ""
    if conv_chain.is_unfinished(form):
        return "a convolution computes the one before it only together with a 1x1 one behind it"
    if is_softmax(form.anchor[1]) and is_computed_product(form.producer.anchor[1]):
        return "a softmax computes its scores only together with the product behind it"
    return ""
