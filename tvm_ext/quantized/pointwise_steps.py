"""Elementwise operators between quantised tensors as scalar steps in float32.

The steps are those of `tvm_ext.codegen.network_elementwise`, so that they have ONNX Runtime's bits.
That sees the values of a uint8 tensor less 128; here they are the tensor's own. A product
and the sum that follows it are one fused multiply-add on every CPU that has it; without it (plain
SSE) both are rounded, and a result next to a tie may be one step off.
"""

from __future__ import annotations

from typing import Any

from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_elementwise import Add, Multiply, Relu, Requantize
from tvm_ext.codegen.network_layers import FULL_RANGE, Layer, Pair, Shape
from tvm_ext.schedules.epilogue import Epilogue, Operand, Ref, Step
from tvm_ext.schedules.workload import ElementwiseWorkload


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
        Of the result, with the batch; operands may have one value a channel.
    unsigned : bool
        The tensors are uint8.
    """
    s = _Steps(layer, network, unsigned)
    if isinstance(layer, Add):
        _add(s, layer)
    elif isinstance(layer, Multiply):
        product = s.add("multiply", s.centred(0), s.centred(1))
        scaled = s.add("multiply", product, ("const", layer.scale))
        less = s.shift - layer.shift
        zero = float(s.zero(layer.output) - less)
        s.store(s.add("add", scaled, ("const", zero)), layer.clamp, after=less)
    elif isinstance(layer, Requantize):
        scaled = s.add("multiply", s.centred(0), ("const", layer.scale))
        s.store(scaled, layer.clamp, after=s.zero(layer.output))
    elif isinstance(layer, Relu):
        limited = s.add("maximum", s.input(0), ("const", float(s.zero(layer.output))))
        s.store(limited, FULL_RANGE, rounded=True)
    else:
        raise AssertionError(f"{type(layer).__name__} isn't elementwise")
    batch = shape[0] // network.tensors[layer.output].shape[0]
    shapes = [network.tensors[name].shape for name in network.inputs]
    operands = tuple(Operand((first * batch, *rest), s.dtype) for first, *rest in shapes)
    return ElementwiseWorkload(shape, s.dtype, Epilogue(tuple(s.steps), operands, 0))


def _add(s: _Steps, layer: Add) -> None:
    # Some sums of uint8 tensors are of their values less 128.
    less = s.shift - layer.shift
    scaled = s.add("multiply", s.input(1, less), ("const", layer.scales[1]))
    inner = s.add("add", scaled, ("const", layer.offset))
    first = s.add("multiply", s.input(0, less), ("const", layer.scales[0]))
    s.store(s.add("add", first, inner), layer.clamp, after=less)
