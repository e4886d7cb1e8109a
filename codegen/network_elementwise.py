"""A network's element-wise operators: sums, products, bounds, activations, rescaling."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_ext.codegen.network_layers import (
    FULL_RANGE,
    Constants,
    Layer,
    Pair,
    Specs,
    clamp_problem,
    is_float32,
)


@dataclass(frozen=True, kw_only=True)
class _Elementwise(Layer):
    """Value by value. Where two images are read, one may be (1, C, 1, 1): a value a channel."""

    def problem(self, tensors: Specs, constants: Constants) -> str:
        shape = tensors[self.output].shape
        allowed = {shape}
        if self._arity() == 2:
            allowed.add((*shape[:2], *(1 for _ in shape[2:])))
        for name in self.inputs:
            if tensors[name].shape not in allowed:
                return f"tensor {name} has shape {tensors[name].shape}; the output has {shape}"
        return self._problem_of(self._arity(), shape, tensors) or self._parameter_problem(tensors)

    def _arity(self) -> int:
        return 1

    def _parameter_problem(self, tensors: Specs) -> str:
        return ""

    def _same_quantization(self, tensors: Specs) -> str:
        y = tensors[self.output]
        if odd := [n for n in self.inputs if not tensors[n].quantized_as(y)]:
            return f"tensor {odd[0]} isn't quantised as the output is"
        return ""


def _shift_problem(shift: int) -> str:
    return "" if shift in (0, 128) else f"shift {shift}; allowed: 0, 128"


@dataclass(frozen=True, kw_only=True)
class Add(_Elementwise):
    """Sum of two tensors, each with its scale.

    ``t = f32((b + shift) * scales[1] + offset)``,
    ``y = clip(sat8(rne(f32((a + shift) * scales[0] + t)) - shift), *clamp)``, each product and sum
    fused: one rounding. The values aren't centred; the zero points are in `offset`
    (`arithmetic.add_registers`).

    Attributes
    ----------
    scales : (a, b)
        float32: ``f32(sa / sy)``, ``f32(sb / sy)``.
    offset : float
        float32, about ``zy - za * scales[0] - zb * scales[1]``, zero points with the shift.
    clamp : (low, high)
    shift : int
        0, or 128: the model's tensors are uint8, and are added as such.
    """

    scales: tuple[float, float]
    offset: float
    clamp: Pair = FULL_RANGE
    shift: int = 0

    def _arity(self) -> int:
        return 2

    def _parameter_problem(self, tensors: Specs) -> str:
        if not all(map(is_float32, (*self.scales, self.offset))):
            return f"scales {self.scales}, offset {self.offset}; allowed: float32"
        return clamp_problem(self.clamp) or _shift_problem(self.shift)


@dataclass(frozen=True, kw_only=True)
class Multiply(_Elementwise):
    """Product of two tensors.

    ``p = (a - za) * (b - zb)`` in int32;
    ``y = clip(sat8(rne(f32(p * scale + (zy + shift))) - shift), *clamp)``: the zero point is added
    before rounding, as ONNX Runtime does it.

    Attributes
    ----------
    scale : float
        float32: ``f32(f32(sa * sb) / sy)``.
    clamp : (low, high)
    shift : int
        0, or 128: the model's result is uint8, and is rounded as such.
    """

    scale: float
    clamp: Pair = FULL_RANGE
    shift: int = 0

    def _arity(self) -> int:
        return 2

    def _parameter_problem(self, tensors: Specs) -> str:
        if not is_float32(self.scale) or self.scale <= 0:
            return f"scale {self.scale!r}; allowed: a positive float32"
        return clamp_problem(self.clamp) or _shift_problem(self.shift)


@dataclass(frozen=True, kw_only=True)
class Minimum(_Elementwise):
    """The smaller of two tensors that are quantised as the output is."""

    def _arity(self) -> int:
        return 2

    def _parameter_problem(self, tensors: Specs) -> str:
        return self._same_quantization(tensors)


@dataclass(frozen=True, kw_only=True)
class Maximum(_Elementwise):
    """The larger of two tensors that are quantised as the output is."""

    def _arity(self) -> int:
        return 2

    def _parameter_problem(self, tensors: Specs) -> str:
        return self._same_quantization(tensors)


@dataclass(frozen=True, kw_only=True)
class Abs(_Elementwise):
    """``y = sat8(abs(x - zx) + zy)``; input and output are quantised alike."""

    def _parameter_problem(self, tensors: Specs) -> str:
        return self._same_quantization(tensors)


@dataclass(frozen=True, kw_only=True)
class Relu(_Elementwise):
    """``y = max(x, zx)``; input and output are quantised alike."""

    def _parameter_problem(self, tensors: Specs) -> str:
        return self._same_quantization(tensors)


@dataclass(frozen=True, kw_only=True)
class LeakyRelu(_Elementwise):
    """``y = sat8(rne(f32((x - zx) * s)) + zy)``, s for negative values another scale.

    Attributes
    ----------
    scale, negative_scale : float
        float32: about ``sx / sy`` and ``alpha * sx / sy``.
    """

    scale: float
    negative_scale: float

    def _parameter_problem(self, tensors: Specs) -> str:
        scales = (self.scale, self.negative_scale)
        if not all(map(is_float32, scales)) or self.scale <= 0:
            return f"scales {scales}; allowed: float32, the first positive"
        return ""


@dataclass(frozen=True, kw_only=True)
class Requantize(_Elementwise):
    """``y = clip(sat8(rne(f32((x - zx) * scale)) + zy), *clamp)``, to another scale or a range.

    Attributes
    ----------
    scale : float
        float32, about ``sx / sy``.
    clamp : (low, high)
    """

    scale: float
    clamp: Pair = FULL_RANGE

    def _parameter_problem(self, tensors: Specs) -> str:
        if not is_float32(self.scale) or self.scale <= 0:
            return f"scale {self.scale!r}; allowed: a positive float32"
        return clamp_problem(self.clamp)
