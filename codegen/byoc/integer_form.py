"""``QLinearConv`` and ``QLinearMatMul`` as the importer writes them: sums in int32, then rescaled.

``clip(round(astype(sum, float32) * factor) + zy)`` of ``sum = conv(x - zx, w) + bias`` holds the
product of the scales only: the scales of the tensors are those of their other readers, or unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_ext.codegen.byoc.graph import Graph, Quantized
from tvm_ext.codegen.byoc.integer_steps import Chain, centred
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.byoc.products import add_conv, add_matmul, as_int32, check_layouts
from tvm_ext.passes import dataflow as df


@dataclass
class IntegerForm:
    """The parts of a requantised product of integers.

    Attributes
    ----------
    call : Call
        ``nn.conv2d`` or ``matmul`` of int32 values.
    data : Var
        The 8-bit activation.
    x_zero, y_zero : ndarray
        In the model's own types.
    weights : ndarray
        int32, less their zero point.
    bias : ndarray or None
        int32.
    factor : ndarray
        float32.
    inside : list of Var
        What only the result is made of, the product last.
    before : tuple of Var
        Its operand before the product.
    """

    call: Any
    data: Any
    x_zero: np.ndarray
    y_zero: np.ndarray
    weights: np.ndarray
    bias: np.ndarray | None
    factor: np.ndarray
    inside: list[Any]
    before: tuple[Any, ...]


def integer_form(graph: Graph, cast: Any) -> IntegerForm | None:
    """The parts, if a cast to 8 bits is the end of this form; else None."""
    chain = Chain(graph)
    shifted = chain.last(cast.args[0], "clip", "add")
    scaled = chain.below(shifted, "round", "multiply")
    wide = chain.below(scaled, "astype")
    if wide is None:
        return None
    call, bias = chain.value(wide.args[0]), None
    if df.op_name(call) == "relax.add":
        bias = graph.integers(call.args[1])
        call = chain.value(call.args[0])
        if bias is None:
            return None
    if df.op_name(call) not in ("relax.nn.conv2d", "relax.matmul"):
        return None
    operand = centred(graph, call.args[0])
    found = [graph.constant(x) for x in (shifted.args[1], scaled.args[1], call.args[1])]
    if operand is None or any(x is None for x in found):
        return None
    y_zero, factor, weights = (np.asarray(x) for x in found)
    return IntegerForm(
        call, operand.var, operand.zero_point, y_zero, weights, bias, factor.astype("float32"),
        chain.inside, operand.steps,
    )  # fmt: skip


def add_integer_form(layers: LayerBuilder, form: IntegerForm, x: Quantized) -> None:
    """The layer of the form.

    Raises
    ------
    Refused
    """
    conv = df.op_name(form.call) == "relax.nn.conv2d"
    channels = form.weights.shape[0 if conv else -1]
    bias = np.zeros(channels) if form.bias is None else form.bias.reshape(-1)
    scales = np.broadcast_to(form.factor.reshape(-1), channels)
    values = form.weights.astype("int64")
    if conv:
        check_layouts(form.call)
        add_conv(layers, form.call, x, values, as_int32(bias), scales)
    else:
        add_matmul(layers, x, values, as_int32(bias), scales)
