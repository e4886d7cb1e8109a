"""The layers of a network without weights: pools, element-wise operators, moves."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tvm_ext.codegen.network_layers import (
    FULL_RANGE,
    POOLS,
    Constants,
    Layer,
    Pair,
    Shape,
    Specs,
    clamp_problem,
    is_float32,
    window_shape,
)


@dataclass(frozen=True, kw_only=True)
class Pool(Layer):
    """Pooling of each channel.

    ``max``: the largest value of the window, padding left out; quantised as the input is.
    ``average`` and ``global_average``: ``total = sum(x - zx)`` in int32 over the window, padding
    being zx; ``y = sat8(rne(f32(f32(total) * scale)) + zy)`` with ``scale = f32(sx / f32(sy * n))``
    (`arithmetic.average_scale`) and n the number of pixels: of the whole window, or with
    `count_include_pad` false of those inside the image.

    Attributes
    ----------
    kind : str
        max, average, global_average.
    kernel, strides : (rows, columns)
        A global pool has the image's size and strides 1.
    pads : (top, left, bottom, right)
        Each smaller than the kernel.
    count_include_pad : bool
    """

    kind: str
    kernel: Pair
    strides: Pair = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    count_include_pad: bool = False

    def problem(self, tensors: Specs, constants: Constants) -> str:
        x, y = tensors[self.inputs[0]], tensors[self.output]
        if self.kind not in POOLS:
            return f"kind {self.kind!r}; allowed: {', '.join(POOLS)}"
        if len(x.shape) != 4:
            return f"the input has shape {x.shape}; allowed: (1, C, H, W)"
        if min(*self.strides, *self.kernel) < 1 or min(self.pads) < 0:
            return f"kernel {self.kernel}, strides {self.strides}, pads {self.pads}"
        if max(p - k for p, k in zip(self.pads, self.kernel * 2, strict=True)) >= 0:
            return f"pads {self.pads}; allowed: less than the kernel {self.kernel}"
        if self.kind == "global_average" and (
            self.kernel != x.shape[2:] or any(self.pads) or self.strides != (1, 1)
        ):
            return f"a global pool of {x.shape} with kernel {self.kernel}"
        if self.kind == "max" and not x.quantized_as(y):
            return "a max pool's input and output have the same scale and zero point"
        rows, columns = window_shape(
            (x.shape[2], x.shape[3]), self.kernel, self.strides, (1, 1), self.pads
        )
        return self._problem_of(1, (*x.shape[:2], rows, columns), tensors)


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


@dataclass(frozen=True, kw_only=True)
class Concat(Layer):
    """Inputs one behind the other along axis 1, channels or columns; all quantised alike."""

    def problem(self, tensors: Specs, constants: Constants) -> str:
        y = tensors[self.output]
        shapes = [tensors[name].shape for name in self.inputs]
        if len(shapes) < 2:
            return f"{len(shapes)} inputs; it takes two or more"
        if odd := [n for n in self.inputs if not tensors[n].quantized_as(y)]:
            return f"tensor {odd[0]} isn't quantised as the output is"
        first = shapes[0]
        if any((s[0], s[2:]) != (first[0], first[2:]) for s in shapes):
            return f"shapes {shapes}; allowed: different in axis 1 alone"
        expected: Shape = (first[0], sum(s[1] for s in shapes), *first[2:])
        return self._problem_of(len(shapes), expected, tensors)


@dataclass(frozen=True, kw_only=True)
class Interleave(Layer):
    """Images whose pixels take turns; all quantised alike.

    With factors (r, c), pixel (y * r + i, x * c + j) of the result is pixel (y, x) of input
    ``i * c + j``. One image r * c times: each pixel is repeated, as by nearest-neighbour resizing.

    Attributes
    ----------
    factors : (rows, columns)
    """

    factors: Pair

    def problem(self, tensors: Specs, constants: Constants) -> str:
        y = tensors[self.output]
        shapes = {tensors[name].shape for name in self.inputs}
        if min(self.factors) < 1:
            return f"factors {self.factors}; allowed: 1 and more"
        if odd := [n for n in self.inputs if not tensors[n].quantized_as(y)]:
            return f"tensor {odd[0]} isn't quantised as the output is"
        if len(shapes) > 1 or len(next(iter(shapes))) != 4:
            return f"shapes {sorted(shapes)}; allowed: one (1, C, H, W)"
        shape = shapes.pop()
        rows, columns = (n * f for n, f in zip(shape[2:], self.factors, strict=True))
        return self._problem_of(prod(self.factors), (*shape[:2], rows, columns), tensors)


@dataclass(frozen=True, kw_only=True)
class Reshape(Layer):
    """The same elements, in the logical order, under another shape.

    No data moves for (1, C, 1, 1) <-> (1, C). With pixels kept channels-last, a flattened image
    of several pixels is in another order; a `MatMul` behind it can have its rows permuted instead.
    """

    def problem(self, tensors: Specs, constants: Constants) -> str:
        x, y = tensors[self.inputs[0]], tensors[self.output]
        if prod(x.shape) != prod(y.shape):
            return f"shape {x.shape} has other elements than {y.shape}"
        if not x.quantized_as(y):
            return "input and output have the same scale and zero point"
        return self._problem_of(1, y.shape, tensors)
