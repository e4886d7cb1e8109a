"""Pools. What ceil_mode adds and adaptive pools with equal windows become ordinary pools."""

from __future__ import annotations

from math import prod

import torch
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.pooling import convert_average_pool, convert_max_pool
from tvm_ext.frontend.onnx_converters.values import const, shape_of
from tvm_ext.frontend.torch_registry import Call, converts, spread

aten = torch.ops.aten


@converts(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def convert_max_pools(call: Call) -> list[relax.Expr | None]:
    """Convert a maximum over windows, without the positions of the maxima."""
    attrs = _window(call)
    attrs["dilations"] = spread(call["dilation"], len(attrs["kernel_shape"]))
    return [_batched(call, convert_max_pool, attrs), None]


@converts(aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
def convert_average_pools(call: Call) -> relax.Expr:
    """Convert an average over windows, or their sum over a divisor of the caller's choice."""
    attrs = _window(call)
    divisor = call.args.get("divisor_override")
    attrs["count_include_pad"] = int(call["count_include_pad"] or divisor is not None)
    if divisor is not None and attrs["ceil_mode"]:
        raise ModelError("divisor_override with ceil_mode isn't supported")
    out = _batched(call, convert_average_pool, attrs)
    if divisor is None:
        return out
    return relax.op.multiply(out, const(prod(attrs["kernel_shape"]) / divisor, call.dtype))


@converts(
    aten._adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool3d.default,
    aten.adaptive_avg_pool1d.default,
)
def convert_adaptive_average_pools(call: Call) -> relax.Expr:
    """Convert an average over as many windows as the result has elements."""
    attrs = _equal_windows(call, call["output_size"])
    if attrs is not None:
        return _batched(call, convert_average_pool, attrs)
    rank = len(call["output_size"])
    operator = getattr(relax.op.nn, f"adaptive_avg_pool{rank}d")
    if len(call.shape) == rank + 2:
        return operator(call["self"], list(call["output_size"]))
    data = call.emit(relax.op.expand_dims, call["self"], 0)
    return relax.op.squeeze(call.emit(operator, data, list(call["output_size"])), [0])


@converts(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def convert_adaptive_max_pools(call: Call) -> list[relax.Expr | None]:
    """Convert a maximum over windows of equal size."""
    attrs = _equal_windows(call, call["output_size"])
    if attrs is None:
        raise ModelError(
            f"adaptive max pooling of {shape_of(call['self'])} to {tuple(call['output_size'])}: "
            "the extents must be multiples of the output's"
        )
    return [_batched(call, convert_max_pool, attrs), None]


def _window(call: Call) -> dict[str, object]:
    """The attributes that ONNX has for a pool's window."""
    rank = len(call["kernel_size"])
    kernel = list(call["kernel_size"])
    return {
        "kernel_shape": kernel,
        "strides": spread(call["stride"], rank) if call["stride"] else kernel,
        "pads": spread(call["padding"], rank) * 2,
        "ceil_mode": int(call["ceil_mode"]),
    }


def _equal_windows(call: Call, output_size: list[int]) -> dict[str, object] | None:
    """The window of an adaptive pool whose input is a multiple of its output."""
    sizes = shape_of(call["self"])[-len(output_size) :]
    if any(n % m for n, m in zip(sizes, output_size, strict=True)):
        return None
    window = [n // m for n, m in zip(sizes, output_size, strict=True)]
    return {"kernel_shape": window, "strides": window}


def _batched(call: Call, converter: object, attrs: dict[str, object]) -> relax.Expr:
    """Pool with a batch dimension, which torch doesn't ask for."""
    data = call["self"]
    if len(call.shape) == len(attrs["kernel_shape"]) + 2:
        return call.onnx(converter, [data], **attrs)
    data = call.emit(relax.op.expand_dims, data, 0)
    return call.emit(relax.op.squeeze, call.onnx(converter, [data], **attrs), [0])
