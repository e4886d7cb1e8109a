"""Activations, softmax, biases and losses."""

from __future__ import annotations

from math import prod

from tvm import relax

from tvm_ext.frontend.onnx_converters.values import constant, scalar, shape_of
from tvm_ext.frontend.relay.converters.moves import along_axis, reshape
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("nn.relu")
def convert_relu(call: OpCall) -> relax.Expr:
    """Convert the larger of x and 0."""
    return relax.op.nn.relu(call.tensor(0))


@converts("nn.leaky_relu")
def convert_leaky_relu(call: OpCall) -> relax.Expr:
    """Convert x where positive, ``alpha * x`` elsewhere."""
    return relax.op.nn.leakyrelu(call.tensor(0), float(call.attr("alpha", 0.25)))


@converts("nn.prelu")
def convert_prelu(call: OpCall) -> relax.Expr:
    """Convert a leaky relu with a slope for each element of one axis."""
    data, slope = call.tensor(0), call.tensor(1)
    axis = int(call.attr("axis", 1)) % len(shape_of(data))
    if constant(slope) is not None:
        return relax.op.nn.prelu(data, slope, axis)
    negative = call.emit(relax.op.less, data, scalar(0, data))
    slope = along_axis(call.bb, slope, axis, len(shape_of(data)))
    return relax.op.where(negative, call.emit(relax.op.multiply, data, slope), data)


@converts("nn.softmax", "nn.fast_softmax")
def convert_softmax(call: OpCall) -> relax.Expr:
    """Convert softmax along one axis."""
    return relax.op.nn.softmax(call.tensor(0), axis=_axis(call))


@converts("nn.log_softmax")
def convert_log_softmax(call: OpCall) -> relax.Expr:
    """Convert the logarithm of softmax along one axis."""
    return relax.op.nn.log_softmax(call.tensor(0), axis=_axis(call))


@converts("nn.bias_add")
def convert_bias_add(call: OpCall) -> relax.Expr:
    """Convert the sum with a vector along one axis."""
    data, bias = call.tensor(0), call.tensor(1)
    bias = along_axis(call.bb, bias, int(call.attr("axis", 1)), len(shape_of(data)))
    return relax.op.add(data, bias)


@converts("nn.batch_flatten")
def convert_batch_flatten(call: OpCall) -> relax.Expr:
    """Convert all dimensions but the first to one."""
    shape = shape_of(call.tensor(0))
    return reshape(call.bb, call.tensor(0), (shape[0], prod(shape[1:])))


@converts("nn.cross_entropy")
def convert_cross_entropy(call: OpCall) -> relax.Expr:
    """Convert ``-sum(targets * log(predictions)) / batch``."""
    return _mean_product(call, call.emit(relax.op.log, call.tensor(0)))


@converts("nn.cross_entropy_with_logits")
def convert_cross_entropy_with_logits(call: OpCall) -> relax.Expr:
    """Convert ``-sum(targets * predictions) / batch``, the predictions being logarithms."""
    return _mean_product(call, call.tensor(0))


@converts("nn.nll_loss")
def convert_nll_loss(call: OpCall) -> relax.Expr:
    """Convert the weighted loss of the targets' logarithms, (N, C, ...) and (N, ...)."""
    return relax.op.nn.nll_loss(
        *(call.tensor(i) for i in range(3)),
        reduction=str(call.attr("reduction", "mean")),
        ignore_index=int(call.attr("ignore_index", -100)),
    )


def _mean_product(call: OpCall, logarithms: relax.Expr) -> relax.Expr:
    product = call.emit(relax.op.multiply, logarithms, call.tensor(1))
    total = call.emit(relax.op.negative, call.emit(relax.op.sum, product))
    return relax.op.divide(total, scalar(shape_of(product)[0], total))


def _axis(call: OpCall) -> int:
    return int(call.attr("axis", -1)) % len(shape_of(call.tensor(0)))
