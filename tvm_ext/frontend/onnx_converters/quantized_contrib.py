"""ONNX Runtime's own quantised operators (com.microsoft), as its quantiser writes them.

`QGemm`, `QLinearAdd` and `QLinearMul` become arithmetic on the integers, rounded where ONNX Runtime
rounds. The others become what they are defined as: dequantize -> operator -> quantize.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.pooling import (
    convert_average_pool,
    convert_global_average_pool,
)
from tvm_ext.frontend.onnx_converters.quantization import centred, requantized
from tvm_ext.frontend.onnx_converters.values import (
    const,
    constant,
    dtype_of,
    optional,
    required_constant,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter

_DOMAIN = "com.microsoft"
Operator = Callable[[relax.BlockBuilder, relax.Expr, Attributes, Node], relax.Expr]


@register_onnx_converter("QGemm", _DOMAIN)
def convert_qgemm(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert QGemm with constant weights and scales; without a y_scale its result is float32."""
    a, a_scale, a_zero, b, b_scale, b_zero = inputs[:6]
    if attrs.get("transA", 0):
        a = bb.emit(relax.op.permute_dims(a, [1, 0]))
    weight = required_constant(centred(bb, b, _per_filter(b_zero, attrs)), "b")
    weight = weight.T if attrs.get("transB", 0) else weight
    out = bb.emit(relax.op.matmul(centred(bb, a, a_zero), const(weight)))
    if (bias := optional(inputs, 6)) is not None:
        out = bb.emit(relax.op.add(out, bias))
    factor = np.float32(attrs.get("alpha", 1.0)) * required_constant(a_scale, "a_scale")
    factor = factor * required_constant(b_scale, "b_scale")
    y_scale = optional(inputs, 7)
    if y_scale is None:
        real = bb.emit(relax.op.astype(out, "float32"))
        return relax.op.multiply(real, const(factor, "float32"))
    scale = factor / required_constant(y_scale, "y_scale")
    return requantized(bb, out, scale, inputs[8])


def _per_filter(zero: relax.Expr | None, attrs: Attributes) -> relax.Expr | None:
    """Zero points, one a column of the product, in the shape of the weights as they are stored."""
    value = constant(zero)
    if value is None or value.size == 1 or not attrs.get("transB", 0):
        return zero
    return const(value.reshape(-1, 1))


@register_onnx_converter("QLinearAdd", _DOMAIN)
def convert_qlinear_add(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert QLinearAdd as ONNX Runtime computes it.

    ``round(a * (sa / sy) + (b * (sb / sy) + offset))`` with
    ``offset = zy - (za * (sa / sy) + zb * (sb / sy))``, on values whose zero points are left in.
    """
    a, b = inputs[0], inputs[3]
    scale_a, scale_b = (np.float32(_value(inputs[i]) / _value(inputs[6])) for i in (1, 4))
    zeros = [_value(x) for x in (inputs[2], inputs[5], optional(inputs, 7))]
    inner = np.float64(zeros[0]) * scale_a + np.float32(zeros[1] * scale_b)
    offset = np.float32(zeros[2] - np.float32(inner))
    terms = [bb.emit(relax.op.astype(x, "float32")) for x in (a, b)]
    terms = [
        bb.emit(relax.op.multiply(x, const(np.float32(scale))))
        for x, scale in zip(terms, (scale_a, scale_b), strict=True)
    ]
    right = bb.emit(relax.op.add(terms[1], const(offset)))
    return _rounded(bb, bb.emit(relax.op.add(terms[0], right)), dtype_of(a))


@register_onnx_converter("QLinearMul", _DOMAIN)
def convert_qlinear_mul(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert QLinearMul: ``round((a - za) * (b - zb) * (sa * sb / sy) + zy)``."""
    a, b = (centred(bb, *inputs[i : i + 4 : 2]) for i in (0, 3))
    scale = _value(inputs[1]) * _value(inputs[4]) / _value(inputs[6])
    product = bb.emit(relax.op.astype(bb.emit(relax.op.multiply(a, b)), "float32"))
    scaled = bb.emit(relax.op.multiply(product, const(np.float32(scale))))
    shifted = bb.emit(relax.op.add(scaled, const(_value(optional(inputs, 7)))))
    return _rounded(bb, shifted, dtype_of(inputs[0]))


def _rounded(bb: relax.BlockBuilder, real: relax.Expr, dtype: str) -> relax.Expr:
    limits = np.iinfo(dtype)
    whole = bb.emit(relax.op.round(real))
    return relax.op.astype(
        bb.emit(relax.op.clip(whole, float(limits.min), float(limits.max))), dtype
    )


def _value(expr: relax.Expr | None) -> np.float32:
    """A scale or zero point as float32; a zero point left out is 0."""
    if expr is None:
        return np.float32(0)
    return np.float32(required_constant(expr, "scale or zero point").reshape(()))


def _unary(op: Operator) -> Callable[..., relax.Expr]:
    def convert(
        bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
    ) -> relax.Expr:
        if attrs.get("channels_last", 0):
            raise ModelError("channels_last is 1; allowed: 0")
        real = _real(bb, *inputs[:3])
        return _integers(bb, bb.emit(op(bb, real, attrs, node)), inputs[3], optional(inputs, 4))

    return convert


@register_onnx_converter("QLinearConcat", _DOMAIN)
def convert_qlinear_concat(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert QLinearConcat; the result's scale and zero point are its first two inputs."""
    triples = [inputs[i : i + 3] for i in range(2, len(inputs), 3)]
    parts = [_real(bb, *triple) for triple in triples]
    return _integers(bb, bb.emit(relax.op.concat(parts, attrs["axis"])), inputs[0], inputs[1])


def _real(
    bb: relax.BlockBuilder, x: relax.Expr, scale: relax.Expr, zero: relax.Expr | None
) -> relax.Expr:
    zero = const(np.zeros((), dtype_of(x))) if zero is None else _scalar(zero)
    return bb.emit(relax.op.dequantize(x, _scalar(scale), zero, axis=-1, out_dtype="float32"))


def _integers(
    bb: relax.BlockBuilder, x: relax.Expr, scale: relax.Expr, zero: relax.Expr | None
) -> relax.Expr:
    zero = const(np.zeros((), "uint8")) if zero is None else _scalar(zero)
    return relax.op.quantize(x, _scalar(scale), zero, axis=-1, out_dtype=dtype_of(zero))


def _scalar(expr: relax.Expr) -> relax.Expr:
    return const(required_constant(expr, "scale or zero point").reshape(()))


for _name, _operator in (
    ("QLinearGlobalAveragePool", lambda bb, x, a, n: convert_global_average_pool(bb, [x], a, n)),
    ("QLinearAveragePool", lambda bb, x, a, n: convert_average_pool(bb, [x], a, n)),
    ("QLinearLeakyRelu", lambda bb, x, a, n: relax.op.nn.leakyrelu(x, a.get("alpha", 0.01))),
    ("QLinearSigmoid", lambda bb, x, a, n: relax.op.sigmoid(x)),
):
    register_onnx_converter(_name, _DOMAIN, converter=_unary(_operator))
