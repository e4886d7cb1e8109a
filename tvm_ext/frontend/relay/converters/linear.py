"""Matrix products: weights that are known arrive transposed, as from the other front ends."""

from __future__ import annotations

from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import constant, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.convolution import widened
from tvm_ext.frontend.relay.converters.moves import permute, relayout
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("nn.dense")
def convert_dense(call: OpCall) -> relax.Expr:
    """Convert ``data @ weight.T``; the weights are (units, features)."""
    return _product(call, call.tensor(1), False, True)


@converts("nn.contrib_dense_pack")
def convert_dense_pack(call: OpCall) -> relax.Expr:
    """Convert a dense layer with blocked weights, (units / n, features, n)."""
    return _product(call, unpacked(call, call.tensor(1)), False, True)


@converts("nn.matmul")
def convert_matmul(call: OpCall) -> relax.Expr:
    """Convert a product of matrices, each perhaps transposed."""
    return _product(call, call.tensor(1), *_transposes(call))


@converts("nn.batch_matmul")
def convert_batch_matmul(call: OpCall) -> relax.Expr:
    """Convert products of pairs of matrices, (B, M, K) and (B, K, N); B broadcasts."""
    return _product(call, call.tensor(1), *_transposes(call))


@converts("einsum")
def convert_einsum(call: OpCall) -> relax.Expr:
    """Convert einsum over a tuple of tensors."""
    equation = str(call.required("equation")).replace(" ", "")
    return relax.op.einsum(tuple(call.tensors()), equation)


def unpacked(call: OpCall, weight: relax.Expr) -> relax.Expr:
    """Weights of a packed dense layer as (units, features)."""
    shape = shape_of(weight)
    default = f"NC{shape[-1]}n" if len(shape) == 3 else "NC"
    layout = str(call.attr("weight_layout", default))
    return relayout(call.bb, weight, layout, "NC")


def multiply(
    call: OpCall, a: relax.Expr, b: relax.Expr, transpose_a: bool, transpose_b: bool
) -> relax.Expr:
    """Return a product of the last two dimensions, each side transposed there if asked."""
    return call.emit(
        relax.op.matmul,
        _transposed(call, a) if transpose_a else a,
        _transposed(call, b) if transpose_b else b,
    )


def _product(call: OpCall, weight: relax.Expr, transpose_a: bool, transpose_b: bool) -> relax.Expr:
    if call.attr("auto_scheduler_rewritten_layout"):
        raise ModelError("auto_scheduler_rewritten_layout: weights that a tuner rewrote")
    data = call.tensor(0)
    dtype = call.dtype("out_dtype", dtype_of(data))
    data = call.cast(data, dtype) if constant(data) is None else widened(call, data, dtype)
    return multiply(call, data, widened(call, weight, dtype), transpose_a, transpose_b)


def _transposes(call: OpCall) -> tuple[bool, bool]:
    return bool(call.attr("transpose_a", False)), bool(call.attr("transpose_b", False))


def _transposed(call: OpCall, expr: relax.Expr) -> relax.Expr:
    rank = len(shape_of(expr))
    return permute(call.bb, expr, [*range(rank - 2), rank - 1, rank - 2])
