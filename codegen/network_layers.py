"""The tensors and layers of a network of int8 operators, each with its own consistency check.

Activations are int8 with one scale and zero point a tensor: ``real = scale * (q - zero_point)``.
A uint8 tensor of a model is the int8 one with 128 subtracted from values and zero point. Weights
are symmetric. ``rne`` rounds halves to even, ``sat8`` clips to [-128, 127], ``f32`` rounds to
float32; each formula below says where roundings happen, so that its result is defined bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

Shape = tuple[int, ...]
Pair = tuple[int, int]
FULL_RANGE: Pair = (-128, 127)
DTYPES = ("int8", "int32")
POOLS = ("max", "average", "global_average")


def is_float32(value: float) -> bool:
    """Whether a Python float is finite and a float32 exactly."""
    return bool(np.isfinite(value)) and float(np.float32(value)) == value


@dataclass(frozen=True)
class TensorSpec:
    """One activation.

    Attributes
    ----------
    name : str
    shape : tuple of int
        (1, C, H, W) or (M, K), the logical order; the accelerator's own order is lowering's choice.
    dtype : str
        int8 or int32.
    scale : float
        Real value of one step, a float32.
    zero_point : int
        The int8 value that stands for 0.
    """

    name: str
    shape: Shape
    dtype: str = "int8"
    scale: float = 1.0
    zero_point: int = 0

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def problem(self) -> str:
        """What is wrong with the tensor, empty if nothing is."""
        if self.dtype not in DTYPES:
            return f"dtype {self.dtype!r}; allowed: {', '.join(DTYPES)}"
        if len(self.shape) not in (2, 4) or any(d < 1 for d in self.shape):
            return f"shape {self.shape}; allowed: (1, C, H, W) and (M, K), nothing empty"
        if len(self.shape) == 4 and self.shape[0] != 1:
            return f"shape {self.shape}; allowed: one image at a time"
        if not is_float32(self.scale) or self.scale <= 0:
            return f"scale {self.scale!r}; allowed: a positive float32"
        if not -128 <= self.zero_point <= 127:
            return f"zero point {self.zero_point}; allowed: -128 to 127"
        return ""

    def quantized_as(self, other: TensorSpec) -> bool:
        """Whether equal integers stand for equal real values in both."""
        return (self.scale, self.zero_point) == (other.scale, other.zero_point)


Specs = Mapping[str, TensorSpec]
Constants = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """What all layers have: a unique name, the tensors read, in order, and the one written."""

    name: str
    inputs: tuple[str, ...]
    output: str

    def constant_names(self) -> tuple[str, ...]:
        """Names of the constants that it reads."""
        return ()

    def macs(self, tensors: Specs, constants: Constants) -> int:
        """Number of its multiply-accumulates."""
        return 0

    def problem(self, tensors: Specs, constants: Constants) -> str:
        """What doesn't fit together, empty if all does."""
        raise NotImplementedError

    def _problem_of(self, inputs: int, expected: Shape, tensors: Specs) -> str:
        """What is wrong with the number of inputs, the dtypes, or the output's shape."""
        if len(self.inputs) != inputs:
            return f"{len(self.inputs)} inputs; it takes {inputs}"
        for name in (*self.inputs, self.output):
            if tensors[name].dtype != "int8":
                return f"tensor {name} is {tensors[name].dtype}; allowed: int8"
        if tensors[self.output].shape != expected:
            return f"the output has shape {tensors[self.output].shape}; it makes {expected}"
        return ""


def clamp_problem(clamp: Pair) -> str:
    """What is wrong with a range of int8 results, empty if nothing is."""
    if not -128 <= clamp[0] <= clamp[1] <= 127:
        return f"clamp {clamp}; allowed: -128 <= low <= high <= 127"
    return ""


def window_shape(
    size: Pair, kernel: Pair, strides: Pair, dilations: Pair, pads: tuple[int, int, int, int]
) -> Pair:
    """Rows and columns that a sliding window makes; below one where it doesn't fit.

    `size` is (H, W), `pads` (top, left, bottom, right).
    """
    rows, columns = (
        (size[i] + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(2)
    )
    return rows, columns


def constants_problem(constants: Constants, expected: Mapping[str, tuple[str, Shape]]) -> str:
    """What is wrong with constants; `expected` gives dtype and shape by name."""
    for name, (dtype, shape) in expected.items():
        if name not in constants:
            return f"constant {name!r} is missing"
        array = constants[name]
        if str(array.dtype) != dtype or array.shape != shape:
            return f"constant {name} is {array.dtype}{array.shape}; it needs {dtype}{shape}"
        if dtype == "float32" and not (np.isfinite(array) & (array > 0)).all():
            return f"constant {name} has scales that aren't positive and finite"
    return ""


@dataclass(frozen=True, kw_only=True)
class Conv(Layer):
    """Convolution, bias, requantisation and activation.

    ``acc = bias + sum((x - zx) * w)`` in int32, padding pixels being zx;
    ``y = clip(sat8(rne(f32(f32(acc) * scales[c])) + zy), *clamp)``.

    Attributes
    ----------
    weight : str
        int8 (Cout, Cin / groups, KH, KW).
    bias : str
        int32 (Cout,), the model's own: the input's zero point isn't folded in.
    scales : str
        float32 (Cout,): ``f32(f32(sx * sw[c]) / sy)``.
    strides, dilations : (rows, columns)
    pads : (top, left, bottom, right)
    groups : int
        1, or the number of channels: depthwise, with Cout = Cin.
    clamp : (low, high)
        int8 limits of the result: how ReLU and ReLU6 are written.
    """

    weight: str
    bias: str
    scales: str
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    clamp: Pair = FULL_RANGE

    def constant_names(self) -> tuple[str, ...]:
        return self.weight, self.bias, self.scales

    def is_depthwise(self) -> bool:
        """Whether each channel has a filter of its own."""
        return self.groups > 1

    def macs(self, tensors: Specs, constants: Constants) -> int:
        return tensors[self.output].size * prod(constants[self.weight].shape[1:])

    def problem(self, tensors: Specs, constants: Constants) -> str:
        shape = tensors[self.inputs[0]].shape
        if len(shape) != 4:
            return f"the input has shape {shape}; allowed: (1, C, H, W)"
        if self.weight not in constants or constants[self.weight].ndim != 4:
            return f"constant {self.weight!r} is no (Cout, Cin / groups, KH, KW)"
        cout, *rest = constants[self.weight].shape
        if self.groups != 1 and not self.groups == shape[1] == cout:
            return f"{self.groups} groups of {shape[1]} channels; allowed: 1, or one a channel"
        if min(*self.strides, *self.dilations) < 1 or min(self.pads) < 0:
            return f"strides {self.strides}, dilations {self.dilations}, pads {self.pads}"
        needed = {
            self.weight: ("int8", (cout, shape[1] // self.groups, *rest[1:])),
            self.bias: ("int32", (cout,)),
            self.scales: ("float32", (cout,)),
        }
        size = window_shape(shape[2:], tuple(rest[1:]), self.strides, self.dilations, self.pads)
        return (
            constants_problem(constants, needed)
            or clamp_problem(self.clamp)
            or self._problem_of(1, (1, cout, *size), tensors)
        )


@dataclass(frozen=True, kw_only=True)
class MatMul(Layer):
    """Product with constant weights: (M, K) x (K, N); arithmetic and constants as of `Conv`.

    Attributes
    ----------
    weight : str
        int8 (K, N).
    bias : str
        int32 (N,).
    scales : str
        float32 (N,).
    clamp : (low, high)
    """

    weight: str
    bias: str
    scales: str
    clamp: Pair = FULL_RANGE

    def constant_names(self) -> tuple[str, ...]:
        return self.weight, self.bias, self.scales

    def macs(self, tensors: Specs, constants: Constants) -> int:
        return tensors[self.inputs[0]].shape[0] * constants[self.weight].size

    def problem(self, tensors: Specs, constants: Constants) -> str:
        shape = tensors[self.inputs[0]].shape
        if len(shape) != 2:
            return f"the input has shape {shape}; allowed: (M, K)"
        if self.weight not in constants or constants[self.weight].ndim != 2:
            return f"constant {self.weight!r} is no (K, N)"
        columns = constants[self.weight].shape[1]
        needed = {
            self.weight: ("int8", (shape[1], columns)),
            self.bias: ("int32", (columns,)),
            self.scales: ("float32", (columns,)),
        }
        return (
            constants_problem(constants, needed)
            or clamp_problem(self.clamp)
            or self._problem_of(1, (shape[0], columns), tensors)
        )
