"""What the accelerator takes, as data: one table for the check, its messages and the docs' page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.network_layers import Constants, Conv, Layer, MatMul, Specs
from tvm_ext.codegen.network_pool import Pool

_INT32 = 2**31 - 1
Values = Callable[[Any, Specs, Constants], tuple[int, ...]]


@dataclass(frozen=True)
class Limit:
    """A range of one number of a layer.

    Attributes
    ----------
    kinds : tuple of type
        The layers that it is about.
    subject : str
        What is limited.
    low, high : int
        Smallest and largest value.
    values : callable
        ``(layer, tensors, constants) -> numbers`` that have to be in the range.
    note : str
        A condition or reason, for the docs.
    """

    kinds: tuple[type[Layer], ...]
    subject: str
    low: int
    high: int
    values: Values
    note: str = ""

    @property
    def allowed(self) -> str:
        """The range in words."""
        return f"{self.low} to {self.high}" if self.low < self.high else str(self.low)

    def refusal(self, layer: Layer, tensors: Specs, constants: Constants) -> str:
        """Why a layer isn't taken, empty if it is."""
        if not isinstance(layer, self.kinds):
            return ""
        odd = [v for v in self.values(layer, tensors, constants) if not self.low <= v <= self.high]
        return f"{self.subject} {odd[0]}; allowed: {self.allowed}" if odd else ""


def _largest_sum(layer: Conv | MatMul, tensors: Specs, constants: Constants) -> tuple[int, ...]:
    """The largest magnitude that the int32 accumulator can reach."""
    weight = constants[layer.weight].astype("int64")
    axes = tuple(range(1, weight.ndim)) if isinstance(layer, Conv) else 0
    zero = tensors[layer.inputs[0]].zero_point
    reach = max(127 - zero, zero + 128)
    bias = np.abs(constants[layer.bias].astype("int64"))
    return (int((np.abs(weight).sum(axes) * reach + bias).max()),)


LIMITS: tuple[Limit, ...] = (
    Limit((Conv,), "kernel extent", 1, 255, lambda x, t, c: c[x.weight].shape[2:]),
    Limit((Conv,), "stride", 1, 255, lambda x, t, c: x.strides),
    Limit((Conv,), "dilation", 1, 255, lambda x, t, c: x.dilations),
    Limit((Conv,), "padding", 0, 255, lambda x, t, c: x.pads),
    Limit((Pool,), "pool extent", 1, 255, lambda x, t, c: x.kernel),
    Limit((Pool,), "pool stride", 1, 255, lambda x, t, c: x.strides),
    Limit(
        (Conv, MatMul), "largest possible sum", 0, _INT32, _largest_sum,
        "of the layer's own weights and bias and any input: the int32 accumulator can't overflow",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What a value of an option of the hardware description rules out.

    Attributes
    ----------
    option, value : str
        The option of `Accelerator` and the value for which it holds.
    subject : str
        What isn't taken then.
    needed : str
        The values of the option with which it is.
    applies : callable
        Whether a layer is one of those.
    """

    option: str
    value: str
    subject: str
    needed: str
    applies: Callable[[Layer], bool]

    def refusal(self, layer: Layer, accelerator: Accelerator) -> str:
        """Why a layer isn't taken, empty if it is."""
        if getattr(accelerator, self.option) != self.value or not self.applies(layer):
            return ""
        return f"{self.subject} with {self.option}={self.value}; allowed with: {self.needed}"


CHOICES: tuple[Choice, ...] = (
    Choice(
        "depthwise", "none", "a depthwise convolution", "software, hardware",
        lambda layer: isinstance(layer, Conv) and layer.is_depthwise(),
    ),
)  # fmt: skip


def refusal(layer: Layer, tensors: Specs, constants: Constants, accelerator: Accelerator) -> str:
    """Why an accelerator doesn't take a layer, empty if it does."""
    for limit in LIMITS:
        if reason := limit.refusal(layer, tensors, constants):
            return reason
    for choice in CHOICES:
        if reason := choice.refusal(layer, accelerator):
            return reason
    return ""
