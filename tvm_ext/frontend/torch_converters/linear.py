"""Matrix products. TVM's converters compute all of them in float32."""

from __future__ import annotations

import torch
from tvm import relax

from tvm_ext.frontend.onnx_converters.linear import convert_gemm
from tvm_ext.frontend.onnx_converters.values import const, constant
from tvm_ext.frontend.torch_registry import Call, converts

aten = torch.ops.aten


@converts(aten.linear.default)
def convert_linear(call: Call) -> relax.Expr:
    """Convert ``input @ weight.T + bias`` with all leading dimensions kept."""
    weight = call["weight"]
    value = constant(weight)
    weight = call.emit(relax.op.permute_dims, weight) if value is None else const(value.T)
    out = relax.op.matmul(call["input"], weight)
    return out if call["bias"] is None else relax.op.add(call.bb.emit(out), call["bias"])


@converts(aten.matmul.default)
def convert_matmul(call: Call) -> relax.Expr:
    """Convert a product that broadcasts as numpy's does."""
    return relax.op.matmul(call["self"], call["other"])


@converts(aten.mm.default, aten.bmm.default)
def convert_mm(call: Call) -> relax.Expr:
    """Convert a product of matrices, or of as many pairs as there are."""
    return relax.op.matmul(call["self"], call["mat2"])


@converts(aten.addmm.default)
def convert_addmm(call: Call) -> relax.Expr:
    """Convert ``beta * self + alpha * mat1 @ mat2``."""
    operands = [call["mat1"], call["mat2"], call["self"]]
    return call.onnx(convert_gemm, operands, alpha=call["alpha"], beta=call["beta"])
