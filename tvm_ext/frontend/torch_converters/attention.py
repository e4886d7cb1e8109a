"""Scaled dot-product attention as two matrix products with a softmax between them."""

from __future__ import annotations

import math

import numpy as np
import torch
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, constant, dtype_of, shape_of
from tvm_ext.frontend.torch_registry import Call, converts

aten = torch.ops.aten


@converts(aten.scaled_dot_product_attention.default)
def convert_attention(call: Call) -> relax.Expr:
    """Convert ``softmax(query @ key.T * scale + mask) @ value``.

    Masks are boolean (False: don't look there), float, or causal. A row that may look nowhere
    gives zeros, as in torch. Heads of key and value are repeated where there are fewer than of
    query (`enable_gqa`).
    """
    if call["dropout_p"]:
        raise ModelError(f"dropout_p is {call['dropout_p']}; only 0 is supported")
    query, key, value = call["query"], call["key"], call["value"]
    if call["enable_gqa"]:
        heads = shape_of(query)[-3]
        key, value = (_repeated(call, x, heads) for x in (key, value))
    scale = call["scale"] or 1 / math.sqrt(shape_of(query)[-1])
    query = call.emit(relax.op.multiply, query, const(scale, call.dtype))
    rank = len(shape_of(key))
    turned = [*range(rank - 2), rank - 1, rank - 2]
    key = call.emit(relax.op.permute_dims, key, turned)
    scores = call.emit(relax.op.matmul, query, key)
    mask = _mask(call, shape_of(scores))
    if mask is not None:
        scores = call.emit(relax.op.add, scores, mask)
    weights = call.emit(relax.op.nn.softmax, scores, -1)
    out = call.emit(relax.op.matmul, weights, value)
    return out if mask is None else _without_blind_rows(call, out, mask)


def _repeated(call: Call, x: relax.Expr, heads: int) -> relax.Expr:
    """(.., h, L, E) -> (.., heads, L, E), each head several times in a row."""
    return call.emit(relax.op.repeat, x, heads // shape_of(x)[-3], -3)


def _mask(call: Call, shape: tuple[int, ...]) -> relax.Expr | None:
    """What is added to the scores: 0 or minus infinity, or the float mask itself."""
    if call["is_causal"]:
        allowed = np.tril(np.ones(shape[-2:], bool))
        return const(np.where(allowed, 0, -np.inf), call.dtype)
    mask = call["attn_mask"]
    if mask is None or dtype_of(mask) != "bool":
        return mask
    zero, never = const(0, call.dtype), const(-np.inf, call.dtype)
    value = constant(mask)
    if value is not None:
        return const(np.where(value, 0, -np.inf), call.dtype)
    return call.emit(relax.op.where, mask, zero, never)


def _without_blind_rows(call: Call, out: relax.Expr, mask: relax.Expr) -> relax.Expr:
    """Zeros, not 0/0, for the queries that the mask lets see nothing."""
    value = constant(mask)
    if value is not None:
        blind = np.isneginf(value).all(axis=-1, keepdims=True)
        if not blind.any():
            return out
        return relax.op.where(const(blind), const(0, call.dtype), out)
    # Not whether the largest entry is -inf: Relax's max starts from the smallest finite number.
    open_ = call.emit(relax.op.greater, mask, const(-np.inf, call.dtype))
    some = call.emit(relax.op.max, call.emit(relax.op.astype, open_, "int8"), -1, keepdims=True)
    return relax.op.where(call.emit(relax.op.astype, some, "bool"), out, const(0, call.dtype))
