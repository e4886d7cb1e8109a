"""Patterns of convolutions and matrix products: dequantised operands -> bias -> clamp -> quantise.

A batch norm that was left in the graph is a multiply and an add by then. With m and b of a channel,
``m * acc * sx * sw + b`` is ``(acc + rne(b / (m * sx * sw))) * (m * sx * sw)``: the factor goes
into the requantisation, its sign into the weights, the rest into the int32 bias. A bias that isn't
quantised with ``sx * sw`` itself is rounded to it: at most half a step of the accumulator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_ext.codegen.arithmetic import product_scales
from tvm_ext.codegen.byoc.epilogue import Epilogue
from tvm_ext.codegen.byoc.graph import Graph, Quantized, Refused, Weights
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.network_layers import Conv, MatMul
from tvm_ext.passes import dataflow as df


def conv2d(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``nn.conv2d`` of an activation with constant weights.

    Raises
    ------
    Refused
    """
    call = epilogue.anchor
    check_layouts(call)
    x, weights = _operands(graph, call)
    channels = len(weights.values)
    if weights.scales.size not in (1, channels) or weights.scales.shape[0] != weights.scales.size:
        raise Refused(
            f"weight scales of shape {weights.scales.shape}; allowed: one, or one an output channel"
        )
    values, bias, scales = _folded(graph, epilogue, x, weights, layers.output, 0)
    add_conv(layers, call, x, values, bias, scales)


def matmul(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``matmul`` of an activation (M, K) with constant weights (K, N).

    Raises
    ------
    Refused
    """
    x, weights = _operands(graph, epilogue.anchor)
    if len(x.shape) != 2 or weights.values.ndim != 2:
        raise Refused(f"a product of {x.shape} and {weights.values.shape}; allowed: (M, K), (K, N)")
    if weights.scales.size > 1 and weights.scales.shape[0] != 1:
        raise Refused(
            f"weight scales of shape {weights.scales.shape}; allowed: one, or one a column"
        )
    values, bias, scales = _folded(graph, epilogue, x, weights, layers.output, 1)
    add_matmul(layers, x, values, bias, scales)


def check_layouts(call: Any) -> None:
    """Refuse convolutions of channels-last models."""
    layouts = (str(call.attrs.data_layout), str(call.attrs.kernel_layout))
    if layouts != ("NCHW", "OIHW"):
        raise Refused(f"layouts {', '.join(layouts)}; allowed: NCHW, OIHW")


def add_conv(
    layers: LayerBuilder, call: Any, x: Quantized, values: np.ndarray, bias: np.ndarray,
    scales: np.ndarray,
) -> None:  # fmt: skip
    """The layer of a ``nn.conv2d`` call."""
    attrs = call.attrs
    groups = int(attrs.groups)
    if groups not in (1, x.shape[1]) or (groups > 1 and len(values) != groups):
        raise Refused(
            f"{groups} groups of {x.shape[1]} channels to {len(values)}; allowed: 1 group, "
            "or as many as channels on both sides"
        )
    pads = [int(p) for p in attrs.padding]
    layers.add(
        Conv, (layers.read(x),), layers.name,
        weight=layers.constant("weight", as_int8(values)), bias=layers.constant("bias", bias),
        scales=layers.constant("scales", scales), strides=tuple(int(s) for s in attrs.strides),
        dilations=tuple(int(d) for d in attrs.dilation), pads=tuple(pads), groups=groups,
        clamp=layers.clamp,
    )  # fmt: skip


def add_matmul(
    layers: LayerBuilder, x: Quantized, values: np.ndarray, bias: np.ndarray, scales: np.ndarray
) -> None:
    """The layer of a ``matmul`` call."""
    layers.add(
        MatMul, (layers.read(x),), layers.name,
        weight=layers.constant("weight", as_int8(values)), bias=layers.constant("bias", bias),
        scales=layers.constant("scales", scales), clamp=layers.clamp,
    )  # fmt: skip


def as_int8(centred: np.ndarray) -> np.ndarray:
    """Weights less their zero point as int8.

    Raises
    ------
    Refused
        They don't fit: the accelerator has no zero point for weights.
    """
    low, high = int(centred.min()), int(centred.max())
    if low < -128 or high > 127:
        raise Refused(f"weights less their zero point from {low} to {high}; allowed: -128 to 127")
    return centred.astype("int8")


def as_int32(bias: np.ndarray) -> np.ndarray:
    """A bias as int32.

    Raises
    ------
    Refused
    """
    if not np.isfinite(bias).all() or np.abs(bias).max(initial=0) > 2**31 - 1:
        raise Refused(f"a bias of {np.abs(bias).max()} steps of the accumulator; allowed: int32")
    return bias.astype("int32")


def _operands(graph: Graph, call: Any) -> tuple[Quantized, Weights]:
    x, weights = graph.dequantized(call.args[0]), graph.weights(call.args[1])
    if x is None:
        raise Refused("its data isn't a dequantised activation")
    if weights is None:
        raise Refused("its weights aren't dequantised constants")
    return x, weights


def _folded(
    graph: Graph, epilogue: Epilogue, x: Quantized, weights: Weights, y: Quantized, axis: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, bias and factors of each channel (`axis` of the weights)."""
    assert x.scale is not None and y.scale is not None
    channels = weights.values.shape[axis]
    weight_scales = weights.scales.reshape(-1)
    if len(epilogue.steps) == 1 and epilogue.steps[0][0] == "add":
        exact = graph.weights(epilogue.steps[0][1])
        sums = np.float32(x.scale) * weight_scales
        if exact is not None and _same(exact.scales, sums):
            bias = as_int32(_each(exact.values, channels, epilogue))
            return weights.values, bias, _scales(x, weight_scales, y, channels)
    factor, shift = _affine(graph, epilogue, channels)
    if not epilogue.steps or (factor == 1).all():
        factors = _scales(x, weight_scales, y, channels)
    else:
        step = np.float64(x.scale) * weight_scales / np.float64(y.scale)
        factors = (np.abs(factor) * step).astype("float32")
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise Refused("a channel's factor is zero or not finite; allowed: positive float32")
    shape = [1] * weights.values.ndim
    shape[axis] = channels
    values = weights.values * np.sign(factor).astype("int64").reshape(shape)
    real_step = np.float64(x.scale) * weight_scales * np.abs(factor)
    return values, as_int32(np.rint(shift / real_step)), factors


def _scales(x: Quantized, weights: np.ndarray, y: Quantized, channels: int) -> np.ndarray:
    assert x.scale is not None and y.scale is not None
    return np.broadcast_to(product_scales(x.scale, weights, y.scale), channels)


def _same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether scales are the products of others, as a quantiser rounds them."""
    flat = found.reshape(-1)
    if flat.size > 1 and (flat == flat[0]).all():
        flat = flat[:1]
    return flat.size in (1, expected.size) and bool(np.allclose(flat, expected, 1e-6, 0))


def _affine(graph: Graph, epilogue: Epilogue, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Factor and shift of each channel, float64."""
    factor, shift = np.ones(channels), np.zeros(channels)
    for name, operand in epilogue.steps:
        real = graph.real(operand)
        assert real is not None
        value = _each(real, channels, epilogue)
        if name in ("add", "subtract"):
            shift = shift + (value if name == "add" else -value)
        else:
            with np.errstate(divide="ignore"):
                value = value if name == "multiply" else 1 / value
            factor, shift = factor * value, shift * value
    return factor, shift


def _each(array: np.ndarray, channels: int, epilogue: Epilogue) -> np.ndarray:
    """A constant operand as one value a channel."""
    rank = len(df.shape_of(epilogue.inside[-1]))
    axis = 1 if rank == 4 else rank - 1
    shape = (1,) * (rank - array.ndim) + array.shape
    if array.size not in (1, channels) or shape[axis] != array.size:
        raise Refused(f"a constant of shape {array.shape} behind it; allowed: one value a channel")
    return np.broadcast_to(array.reshape(-1), channels)
