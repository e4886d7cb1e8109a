"""Gemm, MatMul and Einsum: constant weights arrive already transposed and scaled."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import const, constant, dtype_of, optional, scalar
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


@register_onnx_converter("Gemm")
def convert_gemm(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert ``alpha * A @ B + beta * C``, where ``transA`` and ``transB`` transpose first."""
    a, b, c = inputs[0], inputs[1], optional(inputs, 2)
    alpha, beta = attrs.get("alpha", 1.0), attrs.get("beta", 1.0)
    a = _transposed(bb, a) if attrs.get("transA", 0) else a
    b = _transposed(bb, b) if attrs.get("transB", 0) else b
    # Scale the operand that is known at import, if one is.
    if constant(a) is not None:
        a = _scaled(bb, a, alpha)
    else:
        b = _scaled(bb, b, alpha)
    out = relax.op.matmul(a, b)
    if c is None or beta == 0:
        return out
    return relax.op.add(bb.emit(out), _scaled(bb, c, beta))


@register_onnx_converter("MatMul")
def convert_matmul(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert MatMul, which broadcasts as numpy does."""
    return relax.op.matmul(inputs[0], inputs[1])


@register_onnx_converter("Einsum")
def convert_einsum(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Einsum to ``relax.einsum``."""
    return relax.op.einsum(tuple(inputs), attrs["equation"].replace(" ", ""))


def _transposed(bb: relax.BlockBuilder, expr: relax.Expr) -> relax.Expr:
    value = constant(expr)
    if value is None:
        return bb.emit(relax.op.permute_dims(expr, [1, 0]))
    return const(value.T)


def _scaled(bb: relax.BlockBuilder, expr: relax.Expr, factor: float) -> relax.Expr:
    if factor == 1:
        return expr
    value = constant(expr)
    if value is None:
        return bb.emit(relax.op.multiply(expr, scalar(factor, expr)))
    return const(value * np.asarray(factor, dtype_of(expr)))
