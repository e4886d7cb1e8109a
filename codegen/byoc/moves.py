"""Patterns of pools, concatenations, resizes, reshapes: of dequantised activations or integers."""

from __future__ import annotations

from typing import Any

from tvm_ext.codegen.byoc.epilogue import Epilogue
from tvm_ext.codegen.byoc.factors import centred_range, identity, requantize_factor
from tvm_ext.codegen.byoc.graph import Graph, Quantized, Refused
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.byoc.pointwise import activation, finish
from tvm_ext.codegen.network_elementwise import Requantize
from tvm_ext.codegen.network_layers import FULL_RANGE
from tvm_ext.codegen.network_moves import Concat, Interleave, Reshape
from tvm_ext.codegen.network_pool import Pool


def max_pool2d(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``nn.max_pool2d`` without dilation."""
    add_max_pool(layers, epilogue.anchor, activation(graph, epilogue.anchor.args[0]))


def avg_pool2d(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``nn.avg_pool2d``; over the whole image it is a global average."""
    call = epilogue.anchor
    x = activation(graph, call.args[0])
    window = _window(call)
    whole = window["kernel"] == x.shape[2:] and not any(window["pads"])
    if whole:
        window = {"kernel": x.shape[2:]}
    else:
        window["count_include_pad"] = bool(call.attrs.count_include_pad)
    _average(layers, x, "global_average" if whole else "average", **window)


def mean(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``mean`` over rows and columns."""
    call = epilogue.anchor
    x = activation(graph, call.args[0])
    axes = sorted(int(a) % len(x.shape) for a in call.attrs.axis or range(len(x.shape)))
    if len(x.shape) != 4 or axes != [2, 3]:
        raise Refused(f"a mean of {x.shape} over axes {axes}; allowed: (N, C, H, W) over 2 and 3")
    _average(layers, x, "global_average", kernel=x.shape[2:])


def concat(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``concat`` along axis 1; a part with another scale is requantised before."""
    call = epilogue.anchor
    parts = call.args[0].fields if hasattr(call.args[0], "fields") else call.args[0]
    axis = 0 if call.attrs.axis is None else int(call.attrs.axis)
    xs = [activation(graph, part) for part in parts]
    if axis % len(xs[0].shape) != 1:
        raise Refused(f"a concatenation along axis {axis}; allowed: 1")
    y, names = layers.tensor(layers.output), []
    for i, x in enumerate(xs):
        spec, name = layers.tensor(x), layers.read(x)
        if not spec.quantized_as(y):
            factor = requantize_factor(spec, y, centred_range(spec), identity)
            part = layers.temporary(f"part{i}", x.shape, y.scale, y.zero_point)
            layers.add(Requantize, (name,), part, scale=factor)
            name = part
        names.append(name)
    finish(layers, Concat, tuple(names), y)


def resize2d(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """``image.resize2d`` that repeats pixels."""
    call = epilogue.anchor
    add_resize(layers, call, activation(graph, call.args[0]))


def reshape(graph: Graph, epilogue: Epilogue, layers: LayerBuilder) -> None:
    """A reshape, flatten, squeeze or expand_dims that leaves the batch as it is."""
    add_reshape(layers, activation(graph, epilogue.anchor.args[0]))


def add_reshape(layers: LayerBuilder, x: Quantized) -> None:
    """The layer of any such operator."""
    new = layers.output.shape
    if not new or x.shape[0] != new[0]:
        raise Refused(f"shape {x.shape} to {new}; allowed: the first axis stays")
    name, spec = layers.read(x), layers.tensor(x)
    finish(layers, Reshape, (name,), spec)


def add_max_pool(layers: LayerBuilder, call: Any, x: Quantized) -> None:
    """The layer of a ``nn.max_pool2d`` call."""
    name, spec = layers.read(x), layers.tensor(x)
    finish(layers, Pool, (name,), spec, kind="max", **_window(call))


def add_resize(layers: LayerBuilder, call: Any, x: Quantized) -> None:
    """The layer of an ``image.resize2d`` call."""
    attrs, new = call.attrs, layers.output.shape
    method, rounding = str(attrs.method), str(attrs.rounding_method)
    mode = str(attrs.coordinate_transformation_mode)
    # Halves of a pixel don't occur with whole factors: all roundings of it are alike.
    nearest = mode == "half_pixel" and rounding.startswith("round")
    if method != "nearest_neighbor" or not (nearest or (mode, rounding) == ("asymmetric", "floor")):
        raise Refused(
            f"method {method}, coordinates {mode}, rounding {rounding}; allowed: nearest_neighbor "
            "with asymmetric and floor, or half_pixel and round"
        )
    if str(attrs.layout) != "NCHW" or any(n % o for n, o in zip(new[2:], x.shape[2:], strict=True)):
        raise Refused(
            f"layout {attrs.layout}, {x.shape} to {new}; allowed: NCHW, whole multiples of rows "
            "and columns"
        )
    rows, columns = (n // o for n, o in zip(new[2:], x.shape[2:], strict=True))
    name, spec = layers.read(x), layers.tensor(x)
    finish(layers, Interleave, (name,) * (rows * columns), spec, factors=(rows, columns))


def _average(layers: LayerBuilder, x: Quantized, kind: str, **window: Any) -> None:
    y, name, target = layers.tensor(layers.output), layers.read(x), layers.name
    pooled = (*x.shape[:2], 1, 1) if kind == "global_average" else y.shape
    clamps, flattens = layers.clamp != FULL_RANGE, pooled != y.shape
    for needed, suffix in ((clamps, "pooled"), (flattens, "clamped")):
        if needed:
            target = layers.temporary(suffix, pooled, y.scale, y.zero_point)
            break
    layers.add(Pool, (name,), target, kind=kind, **window)
    if clamps:
        source, target = target, layers.name
        if flattens:
            target = layers.temporary("clamped", pooled, y.scale, y.zero_point)
        layers.add(Requantize, (source,), target, scale=1.0, clamp=layers.clamp)
    if flattens:
        layers.add(Reshape, (target,), layers.name)


def _window(call: Any) -> dict[str, Any]:
    """Kernel, strides and pads of a pool."""
    attrs = call.attrs
    if str(attrs.layout) != "NCHW" or bool(attrs.ceil_mode):
        raise Refused(f"layout {attrs.layout}, ceil_mode {attrs.ceil_mode}; allowed: NCHW, False")
    dilation = tuple(int(d) for d in attrs.dilation)
    if dilation != (1, 1):
        raise Refused(f"pool dilation {dilation}; allowed: (1, 1)")
    return {
        "kernel": tuple(int(k) for k in attrs.pool_size),
        "strides": tuple(int(s) for s in attrs.strides),
        "pads": tuple(int(p) for p in attrs.padding),
    }
