"""Which products and softmaxes are attention: softmax(queries x keys) x values."""

from __future__ import annotations

from math import prod
from typing import Any

from tvm.ir import GenericConst

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_parts import KernelForm


def is_computed_product(expr: Any) -> bool:
    """Whether an operator is a product of two matrices, or stacks of them, both computed."""
    if df.op_name(expr) != "relax.matmul" or df.dtype_of(expr) != "float32":
        return False
    constant = any(isinstance(x, GenericConst) for x in expr.args)
    return not constant and all(len(df.shape_of(x)) > 1 for x in expr.args)


def is_softmax(expr: Any) -> bool:
    """Whether an operator is a softmax of rows."""
    return df.op_name(expr) == "relax.nn.softmax" and has_rows(expr)


def has_rows(normalization: Any) -> bool:
    """Whether a normalisation is one of the innermost dimension alone."""
    attrs = normalization.attrs
    axes = [attrs.axis] if hasattr(attrs, "axis") else list(attrs.axes)
    rank = len(df.shape_of(normalization))
    return [int(axis) % rank for axis in axes] == [rank - 1]


def attention_refusal(product: KernelForm, softmax: KernelForm) -> str:
    """Why a product can't compute a softmax, its first input; an empty string if it can."""
    scores = softmax.producer
    if scores is None or scores.anchor is None or not is_computed_product(scores.anchor[1]):
        return "a product computes its softmax only together with the scores"
    if softmax.operands:
        return "a step behind the softmax reads another tensor"
    assert product.anchor is not None and softmax.anchor is not None
    made, read = df.shape_of(scores.anchor[0]), df.shape_of(softmax.anchor[0])
    if made[-2:] != read[-2:]:
        return f"scores {made} are read as rows of {read}"
    if prod(df.shape_of(product.anchor[0])[:-1]) != prod(made[:-1]):
        return "the scores are read several times"
    return "" if scores.out.is_contiguous else "the scores are stored in another order"
