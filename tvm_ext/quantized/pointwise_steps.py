"""Elementwise operators between quantised tensors as scalar steps in float32.

The steps are those of `tvm_ext.codegen.network_operators`. That sees the values of a uint8 tensor
less 128, and rounds sums and products near ties as those of the tensor itself as often as it can.
Here they are computed on the tensor's own values, so that they have ONNX Runtime's bits. A product
and the sum that follows it are one fused multiply-add on every CPU that has it; without it (plain
SSE) both are rounded, and a result next to a tie may be one step off.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_ext.codegen.arithmetic import fused
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_layers import FULL_RANGE, Layer, Pair, Shape
from tvm_ext.codegen.network_operators import Add, Multiply, Relu, Requantize
from tvm_ext.schedules.epilogue import Epilogue, Operand, Ref, Step
from tvm_ext.schedules.workload import ElementwiseWorkload

# Between a number and its neighbours in float32, relative.
_ALIKE = 4e-6


class _Steps:
    """Collects steps in float32 on the values of tensors, in their own type."""

    def __init__(self, layer: Layer, network: Network, unsigned: bool) -> None:
        self.layer, self.network = layer, network
        # What the tensors' values are more than the network's.
        self.shift = 128 if unsigned else 0
        self.dtype = "uint8" if unsigned else "int8"
        self.steps: list[Step] = []

    def zero(self, name: str) -> int:
        """A tensor's zero point."""
        return int(self.network.tensors[name].zero_point) + self.shift

    def add(self, op: str, *args: Ref, attrs: tuple[float, ...] = ()) -> Ref:
        self.steps.append(Step(op, args, attrs, "float32"))
        return ("value", len(self.steps) - 1)

    def input(self, position: int, less: int = 0) -> Ref:
        """An input's values, less some number."""
        index = self.network.inputs.index(self.layer.inputs[position])
        value = self.add("cast", ("operand", index))
        return self.add("subtract", value, ("const", float(less))) if less else value

    def centred(self, position: int) -> Ref:
        """An input's values less its zero point."""
        return self.input(position, self.zero(self.layer.inputs[position]))

    def store(self, real: Ref, clamp: Pair, after: int = 0, rounded: bool = False) -> None:
        """Round, add `after`, clamp and narrow."""
        whole = real if rounded else self.add("round", real)
        if after:
            whole = self.add("add", whole, ("const", float(after)))
        low, high = (float(limit + self.shift) for limit in clamp)
        limited = self.add("clip", whole, attrs=(low, high))
        self.steps.append(Step("narrow", (limited,), (), self.dtype))


def pointwise(layer: Any, network: Network, shape: Shape, unsigned: bool) -> ElementwiseWorkload:
    """The workload of an `Add`, `Multiply`, `Requantize` or `Relu`.

    Parameters
    ----------
    network : Network
        Of this layer alone.
    shape : tuple of int
        Of all tensors, with the batch.
    unsigned : bool
        The tensors are uint8.
    """
    s = _Steps(layer, network, unsigned)
    if isinstance(layer, Add):
        _add(s, layer)
    elif isinstance(layer, Multiply):
        product = s.add("multiply", s.centred(0), s.centred(1))
        scaled = s.add("multiply", product, ("const", _factor(s, layer)))
        s.store(s.add("add", scaled, ("const", float(s.zero(layer.output)))), layer.clamp)
    elif isinstance(layer, Requantize):
        scaled = s.add("multiply", s.centred(0), ("const", layer.scale))
        s.store(scaled, layer.clamp, after=s.zero(layer.output))
    elif isinstance(layer, Relu):
        limited = s.add("maximum", s.input(0), ("const", float(s.zero(layer.output))))
        s.store(limited, FULL_RANGE, rounded=True)
    else:
        raise AssertionError(f"{type(layer).__name__} isn't elementwise")
    operands = tuple(Operand(shape, s.dtype) for _ in network.inputs)
    return ElementwiseWorkload(shape, s.dtype, Epilogue(tuple(s.steps), operands, 0))


def _add(s: _Steps, layer: Add) -> None:
    offset, less = _offset(s, layer)
    scaled = s.add("multiply", s.input(1, less), ("const", layer.scales[1]))
    inner = s.add("add", scaled, ("const", offset))
    first = s.add("multiply", s.input(0, less), ("const", layer.scales[0]))
    s.store(s.add("add", first, inner), layer.clamp, after=less)


def _offset(s: _Steps, layer: Add) -> tuple[float, int]:
    """The offset for the tensors' own values; or the layer's, for values less a number.

    The latter is for sums that aren't of two tensors, whose offset no zero points tell.
    """
    if not s.shift:
        return layer.offset, 0
    a, b = (np.float32(scale) for scale in layer.scales)
    zero_a, zero_b = (s.zero(name) for name in layer.inputs)
    inner = fused(np.asarray(zero_a), a, np.float32(zero_b * b))
    own = np.float32(np.float32(s.zero(layer.output)) - inner)
    shifted = float(own) + s.shift * sum(layer.scales) - s.shift
    # As far as the layer's one may have been moved to round alike.
    if abs(shifted - layer.offset) <= _ALIKE * max(1.0, abs(layer.offset)):
        return float(own), 0
    return layer.offset, s.shift


def _factor(s: _Steps, layer: Multiply) -> float:
    """The factor that the scales of the tensors make, where they are known; or the layer's."""
    x, y = (np.float32(s.network.tensors[name].scale) for name in layer.inputs)
    own = x * y / np.float32(s.network.tensors[layer.output].scale)
    return float(own) if abs(own - layer.scale) <= _ALIKE * layer.scale else layer.scale
