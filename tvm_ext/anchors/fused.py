"""An anchor together with what was fused around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.anchors.anchor import Anchor
from tvm_ext.anchors.reductions import pool
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_parts import KernelForm
from tvm_ext.schedules.conv_workload import PoolStage
from tvm_ext.schedules.matmul_workload import MatmulWorkload


def fuse_around(anchor: Anchor, form: KernelForm) -> Anchor:
    """The anchor that reads, stores and goes on as `form` says."""
    base: Any = anchor.base
    if isinstance(base, MatmulWorkload) and not base.packed:
        left, right = form.inputs
        base = MatmulWorkload.of(
            df.shape_of(left.expr), df.shape_of(right.expr), form.out_shape,
            lhs=left.view, rhs=right.view, out=form.out,
        )  # fmt: skip
        anchor = replace(anchor, inputs=(left.expr, right.expr))
    if form.epilogue.steps:
        base = replace(base, epilogue=form.epilogue)
    if form.pool is not None:
        base = replace(base, pool=pool_stage(form.pool))
    if form.shuffle > 1:
        base = replace(base, shuffle=form.shuffle)
    if form.prologue is not None:
        base = replace(base, prologue=form.prologue.steps)
        constants = (np.asarray(df.value_of(c)) for c in form.prologue.constants)
        shapes = (operand.shape for operand in form.prologue.steps.operands)
        made = (c.reshape(s) for c, s in zip(constants, shapes, strict=True))
        anchor = replace(anchor, inputs=(form.prologue.source,), weights=(*anchor.weights, *made))
    return replace(anchor, base=base)


def behind(producer: Anchor, anchor: Anchor) -> Anchor:
    """One anchor for a chain of two: the second's first input is what the first computes.

    The inputs are the producer's, then what else the second reads; its weights come last.
    """
    return Anchor(
        replace(anchor.base, producer=producer.base),
        (*producer.inputs, *anchor.inputs[1:]),
        (*anchor.weights, *producer.weights),
    )


def pool_stage(call: relax.Call) -> PoolStage:
    """A pool as the last stage of the convolution that it reads."""
    kind = "max" if df.op_name(call).startswith("relax.nn.max") else "avg"
    read = pool(kind)(call, df.shape_of(call))
    assert isinstance(read, Anchor), read  # the convolution before it has its type and layout
    w = read.base
    return PoolStage(
        w.kind, w.kernel, w.strides, w.pad_before, w.pad_after, w.out_shape[2:],
        w.count_include_pad,
    )  # fmt: skip
