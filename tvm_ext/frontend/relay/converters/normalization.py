"""Normalisations, at inference."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters import normalization as onnx
from tvm_ext.frontend.onnx_converters.values import const, constant, dtype_of, scalar, shape_of
from tvm_ext.frontend.relay.converters.moves import along_axis, permute, reshape
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("nn.batch_norm")
def convert_batch_norm(call: OpCall) -> list[relax.Expr]:
    """Convert a batch norm by moving statistics, which it returns unchanged."""
    data, mean, variance = call.tensor(0), call.tensor(3), call.tensor(4)
    normalized = call.emit(
        relax.op.nn.batch_norm,
        data,
        *_affine(call),
        mean,
        variance,
        axis=int(call.attr("axis", 1)) % len(shape_of(data)),
        epsilon=float(call.attr("epsilon", 1e-5)),
        training=False,
    )
    return [relax.TupleGetItem(normalized, 0), mean, variance]


@converts("nn.layer_norm")
def convert_layer_norm(call: OpCall) -> relax.Expr:
    """Convert the normalisation along one axis."""
    data = call.tensor(0)
    rank = len(shape_of(data))
    axis = int(call.attr("axis", -1)) % rank
    epsilon = float(call.attr("epsilon", 1e-5))
    gamma, beta = _affine(call)
    if axis == rank - 1 and dtype_of(data) != "float64":
        return relax.op.nn.layer_norm(data, gamma, beta, axes=[-1], epsilon=epsilon)
    # The operator of Relax's has the normalised dimensions last.
    out = _standardized(call, data, [axis], epsilon)
    return _scaled(call, out, gamma, beta, axis)


@converts("nn.instance_norm")
def convert_instance_norm(call: OpCall) -> relax.Expr:
    """Convert the normalisation of each channel of each image."""
    data = call.tensor(0)
    rank = len(shape_of(data))
    axis = int(call.attr("axis", 1)) % rank
    axes = [i for i in range(1, rank) if i != axis]
    out = _standardized(call, data, axes, float(call.attr("epsilon", 1e-5)))
    return _scaled(call, out, *_affine(call), axis)


@converts("nn.group_norm")
def convert_group_norm(call: OpCall) -> relax.Expr:
    """Convert the normalisation of groups of channels."""
    data = call.tensor(0)
    shape = shape_of(data)
    axis = int(call.attr("axis", 1)) % len(shape)
    groups = int(call.required("num_groups"))
    if groups < 1 or shape[axis] % groups:
        raise ModelError(f"num_groups is {groups}; it must divide {shape[axis]} channels")
    split = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    grouped = reshape(call.bb, data, split)
    axes = [i for i in range(1, len(split)) if i != axis]
    out = _standardized(call, grouped, axes, float(call.attr("epsilon", 1e-5)))
    return _scaled(call, reshape(call.bb, out, shape), *_affine(call), axis)


@converts("nn.l2_normalize")
def convert_l2_normalize(call: OpCall) -> relax.Expr:
    """Convert ``x / sqrt(max(sum(x**2), eps))``."""
    data = call.tensor(0)
    axes = call.attr("axis")
    axes = [axes] if isinstance(axes, int) else axes or list(range(len(shape_of(data))))
    square = call.emit(relax.op.multiply, data, data)
    total = call.emit(relax.op.sum, square, [int(a) for a in axes], keepdims=True)
    total = call.emit(relax.op.maximum, total, scalar(float(call.required("eps")), data))
    return relax.op.divide(data, call.emit(relax.op.sqrt, total))


@converts("nn.lrn")
def convert_lrn(call: OpCall) -> relax.Expr:
    """Convert ``x / (bias + alpha / size * sum of x**2 over neighbouring channels) ** beta``."""
    data = call.tensor(0)
    rank = len(shape_of(data))
    axis = int(call.attr("axis", 1)) % rank
    order = [0, axis, *(i for i in range(1, rank) if i != axis)]
    out = call.onnx(
        onnx.convert_lrn,
        [permute(call.bb, data, order)],
        size=int(call.attr("size", 5)),
        alpha=float(call.attr("alpha", 1e-4)),
        beta=float(call.attr("beta", 0.75)),
        bias=float(call.attr("bias", 2.0)),
    )
    return permute(call.bb, out, [order.index(i) for i in range(rank)])


def _affine(call: OpCall) -> tuple[relax.Expr, relax.Expr]:
    """Scale and shift; ones and zeros where the attributes say that they're not used."""
    gamma, beta = call.tensor(1), call.tensor(2)
    if not call.attr("scale", True):
        gamma = const(np.ones(shape_of(gamma)), dtype_of(gamma))
    if not call.attr("center", True):
        beta = const(np.zeros(shape_of(beta)), dtype_of(beta))
    return gamma, beta


def _standardized(call: OpCall, data: relax.Expr, axes: list[int], epsilon: float) -> relax.Expr:
    """Data of mean 0 and variance 1 over `axes`."""
    mean = call.emit(relax.op.mean, data, axes, keepdims=True)
    centred = call.emit(relax.op.subtract, data, mean)
    square = call.emit(relax.op.multiply, centred, centred)
    variance = call.emit(relax.op.mean, square, axes, keepdims=True)
    shifted = call.emit(relax.op.add, variance, scalar(epsilon, variance))
    root = call.emit(relax.op.sqrt, shifted)
    return call.emit(relax.op.divide, centred, root)


def _scaled(
    call: OpCall, data: relax.Expr, gamma: relax.Expr, beta: relax.Expr, axis: int
) -> relax.Expr:
    rank = len(shape_of(data))
    value = constant(gamma)
    if value is None or not (value == 1).all():
        data = call.emit(relax.op.multiply, data, along_axis(call.bb, gamma, axis, rank))
    value = constant(beta)
    if value is None or value.any():
        data = call.emit(relax.op.add, data, along_axis(call.bb, beta, axis, rank))
    return data
