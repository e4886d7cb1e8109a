"""The instruction that computes a nest's tiles, with what is the same for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_ext.codegen.arithmetic import average_scale
from tvm_ext.codegen.lowering import nest as kinds
from tvm_ext.codegen.lowering.nest import Nest
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
from tvm_ext.codegen.network_layers import FULL_RANGE, Layer, Pair, TensorSpec
from tvm_ext.codegen.network_moves import Concat, Interleave
from tvm_ext.codegen.network_pool import Pool

Registers = dict[str, int | float]
_MAXIMUM, _AVERAGE, _AVERAGE_INSIDE = 0, 1, 2


@dataclass(frozen=True)
class Recipe:
    """Mnemonic, and the fields and registers that don't depend on the tile.

    `relu` is true for an OP_CONV that can be an OP_CONV_RELU where its result is int8.
    """

    mnemonic: str
    fields: Mapping[str, int] = field(default_factory=dict)
    registers: Registers = field(default_factory=dict)
    relu: bool = False


def recipe_of(nest: Nest, tensors: Mapping[str, TensorSpec]) -> Recipe:
    """The recipe of a nest; `tensors` are the network's."""
    layer = nest.layer
    xs, y = [tensors[name] for name in layer.inputs], tensors[layer.output]
    if nest.operation == kinds.POOL:
        assert isinstance(layer, Pool)
        return _pool(nest, layer, xs[0], y)
    if nest.operation == kinds.ELEMENTWISE:
        return _ELEMENTWISE[type(layer)](layer, xs, y)
    clamp: Pair = layer.clamp  # type: ignore[attr-defined]
    registers: Registers = {"output_zero": y.zero_point, **_clamp(clamp)}
    if nest.operation == kinds.SHIFT:
        return Recipe("OP_E_SHIFT", {"per_channel": 1}, registers)
    registers["input_zero"] = xs[0].zero_point
    if nest.wide:
        registers = {"input_zero": xs[0].zero_point}
    fields = {"per_channel": int(not nest.wide), "wide": int(nest.wide)}
    if nest.operation == kinds.MATMUL:
        del registers["input_zero"]
        return Recipe("OP_MAT_MUL", fields, registers)
    registers |= _window(nest)
    if nest.operation == kinds.DEPTH:
        return Recipe("OP_DEPTH_CONV", fields, registers)
    return Recipe("OP_CONV", fields, registers, not nest.wide and clamp[0] == y.zero_point)


def _clamp(clamp: Pair) -> Registers:
    return {"clamp_low": clamp[0], "clamp_high": clamp[1]}


def _window(nest: Nest) -> Registers:
    names = (("kernel", nest.kernel), ("stride", nest.strides), ("dilation", nest.dilations))
    return {
        f"{name}_{side}": value
        for name, values in names
        for side, value in zip(("height", "width"), values, strict=True)
    }


def _pool(nest: Nest, layer: Pool, x: TensorSpec, y: TensorSpec) -> Recipe:
    registers = _clamp(FULL_RANGE) | _window(nest)
    if layer.kind == "max":
        return Recipe("OP_POOL", {"kind": _MAXIMUM}, registers)
    registers |= {"input_zero": x.zero_point, "output_zero": y.zero_point}
    if any(layer.pads) and not layer.count_include_pad:
        registers |= {"scale": float(x.scale), "other_scale": float(y.scale)}
        return Recipe("OP_POOL", {"kind": _AVERAGE_INSIDE}, registers)
    registers["scale"] = float(average_scale(x, y, nest.taps))
    return Recipe("OP_POOL", {"kind": _AVERAGE}, registers)


_Rule = Callable[[Any, list[TensorSpec], TensorSpec], Recipe]


def _add(layer: Add, xs: list[TensorSpec], y: TensorSpec) -> Recipe:
    first, second = layer.scales
    registers: Registers = {
        "scale": first, "other_scale": second, "offset": layer.offset,
        "value_shift": layer.shift, **_clamp(layer.clamp),
    }  # fmt: skip
    return Recipe("OP_E_ADD", {}, registers)


def _multiply(layer: Multiply, xs: list[TensorSpec], y: TensorSpec) -> Recipe:
    zeros = (xs[0].zero_point, xs[1].zero_point, y.zero_point)
    registers: Registers = dict(
        zip(("input_zero", "other_zero", "output_zero"), zeros, strict=True)
    )
    registers |= {"scale": layer.scale, "value_shift": layer.shift}
    return Recipe("OP_E_MUL", {}, registers | _clamp(layer.clamp))


def _scaled(layer: LeakyRelu | Requantize, xs: list[TensorSpec], y: TensorSpec) -> Recipe:
    registers: Registers = {
        "input_zero": xs[0].zero_point, "output_zero": y.zero_point, "scale": layer.scale,
    }  # fmt: skip
    if isinstance(layer, LeakyRelu):
        registers |= {"negative_scale": layer.negative_scale, **_clamp(FULL_RANGE)}
        return Recipe("OP_ACT_LRELU", {}, registers)
    return Recipe("OP_E_SHIFT", {"narrow": 1}, registers | _clamp(layer.clamp))


def _abs(layer: Layer, xs: list[TensorSpec], y: TensorSpec) -> Recipe:
    zeros: Registers = {"input_zero": xs[0].zero_point, "output_zero": y.zero_point}
    return Recipe("OP_E_ABS", {}, zeros | _clamp(FULL_RANGE))


def _relu(zero: int) -> Recipe:
    return Recipe("OP_ACT_RELU", {}, {"input_zero": zero, **_clamp(FULL_RANGE)})


_ELEMENTWISE: dict[type[Layer], _Rule] = {
    Add: _add,
    Multiply: _multiply,
    Minimum: lambda layer, xs, y: Recipe("OP_C_MIN"),
    Maximum: lambda layer, xs, y: Recipe("OP_C_MAX"),
    Abs: _abs,
    Relu: lambda layer, xs, y: _relu(xs[0].zero_point),
    LeakyRelu: _scaled,
    Requantize: _scaled,
    # A copy within SRAM: no value is below the smallest.
    Concat: lambda layer, xs, y: _relu(int(np.iinfo(np.int8).min)),
    Interleave: lambda layer, xs, y: _relu(int(np.iinfo(np.int8).min)),
}
