"""Patterns of operators without weights: dequantised operands -> operator -> clamp -> quantise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm_ext.codegen.arithmetic import add_registers
from tvm_ext.codegen.byoc.affine import add_constants
from tvm_ext.codegen.byoc.epilogue import Epilogue
from tvm_ext.codegen.byoc.factors import centred_range, identity, requantize_factor
from tvm_ext.codegen.byoc.graph import Graph, Quantized, Refused
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.network_elementwise import (
    Abs,
    Add,
    LeakyRelu,
    Maximum,
    Minimum,
    Multiply,
    Relu,
    Requantize,
)
from tvm_ext.codegen.network_layers import FULL_RANGE, Layer, TensorSpec


def add(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``add`` of two activations, of one shape or one with a value a channel."""
    a, b = _two(graph, epilogue.anchor, layers.output)
    y, shift = layers.tensor(layers.output), layers.output.shift
    names = layers.read(a), layers.read(b)
    scales, offset = add_registers(layers.tensor(a), layers.tensor(b), y, shift)
    layers.add(
        Add, names, layers.name, scales=scales, offset=offset, clamp=layers.clamp, shift=shift
    )


def multiply(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``multiply`` of two activations, of one shape or one with a value a channel."""
    a, b = _two(graph, epilogue.anchor, layers.output)
    y, names = layers.tensor(layers.output), (layers.read(a), layers.read(b))
    product = np.float32(layers.tensor(a).scale) * np.float32(layers.tensor(b).scale)
    layers.add(
        Multiply, names, layers.name, scale=float(product / np.float32(y.scale)),
        clamp=layers.clamp, shift=layers.output.shift,
    )  # fmt: skip


def maximum(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``maximum`` of two activations that are quantised alike."""
    _compare(graph, epilogue, layers, Maximum)


def minimum(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``minimum`` of two activations that are quantised alike."""
    _compare(graph, epilogue, layers, Minimum)


def absolute(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``abs`` of an activation."""
    x = layers.tensor(activation(graph, epilogue.anchor.args[0]))
    name = layers.read(activation(graph, epilogue.anchor.args[0]))
    finish(layers, Abs, (name,), x)


def leaky_relu(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``nn.leakyrelu`` with one slope."""
    x = activation(graph, epilogue.anchor.args[0])
    spec, y = layers.tensor(x), layers.tensor(layers.output)
    alpha = np.float32(epilogue.anchor.attrs.alpha)
    values = centred_range(spec)
    scale = requantize_factor(spec, y, values[values >= 0], identity) if values[-1] > 0 else 1.0
    slope = float(np.float32(spec.scale * float(alpha) / y.scale))
    if values[0] < 0 and alpha != 0:
        slope = requantize_factor(
            spec, y, values[values < 0], lambda real: real * alpha, float(alpha)
        )
    target = layers.name
    if layers.clamp != FULL_RANGE:
        target = layers.temporary("leaky", x.shape, y.scale, y.zero_point)
    layers.add(LeakyRelu, (layers.read(x),), target, scale=scale, negative_scale=slope)
    if layers.clamp != FULL_RANGE:
        layers.add(Requantize, (target,), layers.name, scale=1.0, clamp=layers.clamp)


def requantize(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``dequantize`` -> sums and products with constants -> clamp -> ``quantize``, all optional."""
    x = graph.dequantized_call(epilogue.anchor)
    if x is None:
        raise Refused("what is dequantised is a constant; allowed: an activation")
    if epilogue.steps:
        add_constants(graph, epilogue, layers, x)
        return
    spec, y = layers.tensor(x), layers.tensor(layers.output)
    name = layers.read(x)
    if spec.quantized_as(y) and layers.clamp == (y.zero_point, 127):
        layers.add(Relu, (name,), layers.name)
        return
    low, high = epilogue.low, epilogue.high
    factor = requantize_factor(
        spec, y, centred_range(spec), lambda real: np.clip(real, low, high), clamp=layers.clamp
    )
    if spec.quantized_as(y):
        factor = 1.0
    layers.add(Requantize, (name,), layers.name, scale=factor, clamp=layers.clamp)


def activation(graph: Graph, expr: Any) -> Quantized:
    """A dequantised activation with a known scale.

    Raises
    ------
    Refused
        The expression is anything else.
    """
    x = graph.dequantized(expr)
    if x is None:
        what = "a constant" if graph.real(expr) is not None else "a real tensor"
        raise Refused(f"it reads {what}; allowed: dequantised activations")
    return x


def finish(
    layers: LayerBuilder, layer: type[Layer], inputs: tuple[str, ...], made: TensorSpec,
    **fields: Any,
) -> None:  # fmt: skip
    """A layer whose result is quantised as `made`; what the output needs more is a `Requantize`."""
    y = layers.tensor(layers.output)
    if made.quantized_as(y) and layers.clamp == FULL_RANGE:
        layers.add(layer, inputs, layers.name, **fields)
        return
    between = layers.temporary("before", y.shape, made.scale, made.zero_point)
    layers.add(layer, inputs, between, **fields)
    scale = requantize_factor(made, y, centred_range(made), identity, clamp=layers.clamp)
    if math.isclose(made.scale, y.scale, rel_tol=0):
        scale = 1.0
    layers.add(Requantize, (between,), layers.name, scale=scale, clamp=layers.clamp)


def check_shapes(a: Quantized, b: Quantized, y: Quantized) -> None:
    """Refuse operands of an elementwise operator of which none has the result's shape.

    Raises
    ------
    Refused
        One is neither of that shape nor one value a channel.
    """
    channels = (*y.shape[:2], *(1 for _ in y.shape[2:]))
    for x in (a, b):
        if x.shape not in (y.shape, channels):
            raise Refused(
                f"shapes {a.shape} and {b.shape}; allowed: equal ones, or one value a channel"
            )


def _two(graph: Graph, call: Any, y: Quantized) -> tuple[Quantized, Quantized]:
    a, b = activation(graph, call.args[0]), activation(graph, call.args[1])
    check_shapes(a, b, y)
    return a, b


def _compare(graph: Graph, epilogue: Epilogue, layers: LayerBuilder, kind: type[Layer]) -> None:
    a, b = _two(graph, epilogue.anchor, layers.output)
    names, spec = (layers.read(a), layers.read(b)), layers.tensor(a)
    if not spec.quantized_as(layers.tensor(b)):
        raise Refused("its operands have different scales or zero points; allowed: equal ones")
    finish(layers, kind, names, spec)
