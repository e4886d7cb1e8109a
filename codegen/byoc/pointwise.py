"""Patterns of operators without weights: dequantised operands -> operator -> clamp -> quantise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm_ext.codegen.arithmetic import add_registers, fused, min_misses, shifted_factor
from tvm_ext.codegen.byoc.epilogue import Epilogue
from tvm_ext.codegen.byoc.factors import centred_range, identity, requantize_factor
from tvm_ext.codegen.byoc.graph import Graph, Quantized, Refused
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.network_layers import FULL_RANGE, Layer, TensorSpec
from tvm_ext.codegen.network_operators import (
    Abs,
    Add,
    LeakyRelu,
    Maximum,
    Minimum,
    Multiply,
    Relu,
    Requantize,
)


def add(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``add`` of two activations of one shape."""
    a, b = _two(graph, epilogue.anchor)
    y = layers.tensor(layers.output)
    names = layers.read(a), layers.read(b)
    unsigned = layers.output.unsigned
    scales, offset = add_registers(layers.tensor(a), layers.tensor(b), y, unsigned)
    layers.add(Add, names, layers.name, scales=scales, offset=offset, clamp=layers.clamp)


def multiply(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``multiply`` of two activations of one shape."""
    a, b = _two(graph, epilogue.anchor)
    y = layers.tensor(layers.output)
    names = layers.read(a), layers.read(b)
    specs = layers.tensor(a), layers.tensor(b)
    product = np.float32(specs[0].scale) * np.float32(specs[1].scale)
    zeros = (specs[0].zero_point, specs[1].zero_point, y.zero_point)
    scale = float(product / np.float32(y.scale))
    if layers.output.unsigned:
        scale = shifted_factor(scale, zeros)
    layers.add(Multiply, names, layers.name, scale=scale, clamp=layers.clamp)


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
        _affine(graph, epilogue, layers, x)
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


def _affine(graph: Graph, epilogue: Epilogue, layers: LayerBuilder, x: Quantized) -> None:
    """Sums and products with single constants, as those of hard swish: one `Add` to 0 times itself.

    ``y = x * scales[0] + (x * 0 + offset)``; the offset is the one near the exact one with which
    the fewest of the 256 values differ from the model's own steps in float32.
    """
    spec, y = layers.tensor(x), layers.tensor(layers.output)
    factor, shift = 1.0, 0.0
    real = centred_range(spec).astype("float32") * np.float32(spec.scale)
    for name, operand in epilogue.steps:
        constant = graph.real(operand)
        assert constant is not None
        if constant.size != 1:
            raise Refused(f"a constant of shape {constant.shape} behind it; allowed: one value")
        value = float(constant.reshape(()))
        if name in ("add", "subtract"):
            value = value if name == "add" else -value
            shift += value
            real = real + np.float32(value)
        elif name == "multiply" or value:
            value = value if name == "multiply" else 1 / value
            factor, shift = factor * value, shift * value
            real = real * np.float32(value)
        else:
            raise Refused("a division by 0 behind it; allowed: other constants")
    scale = np.float32(factor * spec.scale / y.scale)
    exact = np.clip(real, epilogue.low, epilogue.high) / np.float32(y.scale)
    wanted = np.clip(np.rint(exact) + y.zero_point, *layers.clamp)
    integers = np.arange(-128, 128)

    def misses(offset: np.float32) -> int:
        found = np.rint(fused(integers, scale, offset))
        return int((np.clip(found, *layers.clamp) != wanted).sum())

    start = np.float32(y.zero_point + shift / y.scale - spec.zero_point * float(scale))
    if not np.isfinite(start) or not np.isfinite(scale):
        raise Refused(f"constants {factor} and {shift} behind it; allowed: finite ones")
    offset = float(min_misses(start, misses))
    name = layers.read(x)
    layers.add(
        Add, (name, name), layers.name, scales=(float(scale), 0.0), offset=offset,
        clamp=layers.clamp,
    )  # fmt: skip


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


def _two(graph: Graph, call: Any) -> tuple[Quantized, Quantized]:
    a, b = activation(graph, call.args[0]), activation(graph, call.args[1])
    if a.shape != b.shape:
        raise Refused(f"shapes {a.shape} and {b.shape}; allowed: equal ones")
    return a, b


def _compare(graph: Graph, epilogue: Epilogue, layers: LayerBuilder, kind: type[Layer]) -> None:
    a, b = _two(graph, epilogue.anchor)
    names, spec = (layers.read(a), layers.read(b)), layers.tensor(a)
    if not spec.quantized_as(layers.tensor(b)):
        raise Refused("its operands have different scales or zero points; allowed: equal ones")
    finish(layers, kind, names, spec)
