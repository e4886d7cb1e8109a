"""A network's layers that move values unchanged: concatenation, interleaving, reshaping."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tvm_ext.codegen.network_layers import Constants, Layer, Pair, Shape, Specs


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
