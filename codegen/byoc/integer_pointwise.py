"""``QLinearAdd`` and ``QLinearMul`` as the importer writes them, rounded as ONNX Runtime does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tvm_ext.codegen.arithmetic import fused
from tvm_ext.codegen.byoc.affine import add_affine
from tvm_ext.codegen.byoc.graph import INTEGERS, Graph, Quantized
from tvm_ext.codegen.byoc.integer_steps import Chain, centred, is_cast
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.byoc.pointwise import check_shapes
from tvm_ext.codegen.network_elementwise import Add, Multiply
from tvm_ext.passes import dataflow as df

Zeros = Sequence[int]


class IntegerPointwise(Protocol):
    """A sum or product of integers.

    Attributes
    ----------
    operator : str
    data : tuple of Var
        The operands that aren't constant.
    zeros : tuple of ndarray or None
        Their zero points, where the form says them.
    inside, before : sequence of Var
    """

    operator: str
    data: tuple[Any, ...]
    zeros: tuple[np.ndarray | None, ...]
    inside: list[Any]
    before: tuple[Any, ...]

    def result_zero(self, zeros: Zeros) -> int | None:
        """The result's zero point, None where the form doesn't say it."""

    def add(self, layers: LayerBuilder, xs: Sequence[Quantized]) -> None:
        """The layer."""


@dataclass(frozen=True)
class IntegerSum:
    """``round(a * scales[0] + (b * scales[1] + offset))``.

    Attributes
    ----------
    scales : (float, float)
    offset : float
        Of values in the model's own type.
    constants : (ndarray or None, ndarray or None)
        The value of an operand that is constant; at most one is.
    """

    data: tuple[Any, ...]
    zeros: tuple[np.ndarray | None, ...]
    scales: tuple[float, float]
    offset: float
    constants: tuple[np.ndarray | None, np.ndarray | None]
    inside: list[Any]
    before: tuple[Any, ...]
    operator: str = "add"

    def result_zero(self, zeros: Zeros) -> int | None:
        """It is in the offset, as are the zero points of both operands."""
        if len(self.data) == 1:
            return None
        real = self.offset + sum(z * s for z, s in zip(zeros, self.scales, strict=True))
        return int(np.rint(real))

    def add(self, layers: LayerBuilder, xs: Sequence[Quantized]) -> None:
        """An `Add`."""
        if len(xs) == 1:
            self._add_constant(layers, xs[0])
            return
        check_shapes(xs[0], xs[1], layers.output)
        names, shift = (layers.read(xs[0]), layers.read(xs[1])), layers.output.shift
        layers.add(Add, names, layers.name, scales=self.scales, offset=self.offset, shift=shift)

    def _add_constant(self, layers: LayerBuilder, x: Quantized) -> None:
        place = 0 if self.constants[1] is not None else 1
        constant = self.constants[1 - place]
        assert constant is not None
        # ONNX Runtime puts the constant into the offset first, whichever operand it is.
        inner = fused(constant.reshape(()), self.scales[1 - place], np.float32(self.offset))
        scale, own = self.scales[place], np.arange(-128, 128) + x.shift
        wanted = np.rint(fused(own, scale, inner)) - x.shift
        add_affine(layers, x, wanted, scale, float(inner) + x.shift * scale - x.shift)


@dataclass(frozen=True)
class IntegerProduct:
    """``round((a - za) * (b - zb) * scale + zy)``.

    Attributes
    ----------
    scale : float
    zero_point : int
        Of the result, in the model's own type.
    constant : int or None
        What the only operand of `data` is multiplied by.
    """

    data: tuple[Any, ...]
    zeros: tuple[np.ndarray | None, ...]
    scale: float
    zero_point: int
    constant: int | None
    inside: list[Any]
    before: tuple[Any, ...]
    operator: str = "multiply"

    def result_zero(self, zeros: Zeros) -> int:
        """The form has it."""
        return self.zero_point

    def add(self, layers: LayerBuilder, xs: Sequence[Quantized]) -> None:
        """A `Multiply`, or an affine layer."""
        zero = layers.output.zero_point
        if self.constant is not None:
            (x,) = xs
            products = (np.arange(-128, 128) - x.zero_point) * self.constant
            wanted = np.rint(fused(products, self.scale, float(self.zero_point))) - x.shift
            factor = self.constant * self.scale
            add_affine(layers, x, wanted, factor, zero - x.zero_point * factor)
            return
        a, b = xs
        check_shapes(a, b, layers.output)
        names, shift = (layers.read(a), layers.read(b)), layers.output.shift
        layers.add(Multiply, names, layers.name, scale=self.scale, shift=shift)


def integer_sum(graph: Graph, cast: Any) -> IntegerSum | None:
    """The parts of a sum that a cast to 8 bits ends; None for anything else."""
    chain = Chain(graph)
    total = chain.last(cast.args[0], "clip", "round", "add")
    if total is None or graph.op(total.args[1]) != "relax.add":
        return None
    right = graph.value(total.args[1])
    terms = [graph.value(x) for x in (total.args[0], right.args[0])]
    if any(df.op_name(term) != "relax.multiply" for term in terms):
        return None
    numbers = [graph.constant(x) for x in (terms[0].args[1], terms[1].args[1], right.args[1])]
    if any(c is None for c in numbers):
        return None
    constants = [_cast_constant(graph, term.args[0]) for term in terms]
    operands = [
        centred(graph, term.args[0])
        for term, constant in zip(terms, constants, strict=True)
        if constant is None
    ]
    found = [x for x in operands if x is not None]
    if not found or len(found) < len(operands):
        return None
    scale_a, scale_b, offset = (float(np.asarray(c).reshape(())) for c in numbers)
    steps = [step for operand in found for step in operand.steps]
    steps += [
        term.args[0]
        for term, constant in zip(terms, constants, strict=True)
        if constant is not None
    ]
    return IntegerSum(
        tuple(x.var for x in found), (None,) * len(found), (scale_a, scale_b), offset,
        (constants[0], constants[1]), chain.inside,
        (total.args[1], total.args[0], right.args[0], *steps),
    )  # fmt: skip


def integer_product(graph: Graph, cast: Any) -> IntegerProduct | None:
    """The parts of a product that a cast to 8 bits ends; None for anything else."""
    chain = Chain(graph)
    shifted = chain.last(cast.args[0], "clip", "round", "add")
    scaled = chain.below(shifted, "multiply")
    product = chain.below(scaled, "astype", "multiply")
    if product is None:
        return None
    zero, scale = (graph.constant(call.args[1]) for call in (shifted, scaled))
    constants = [c for x in product.args if (c := graph.constant(x)) is not None and c.size == 1]
    operands = [centred(graph, x) for x in product.args if graph.constant(x) is None]
    found = [x for x in operands if x is not None]
    if zero is None or scale is None or not found or len(found) + len(constants) != 2:
        return None
    return IntegerProduct(
        tuple(x.var for x in found), tuple(x.zero_point for x in found),
        float(scale.reshape(())), int(zero.reshape(())),
        int(constants[0].reshape(())) if constants else None, chain.inside,
        tuple(step for x in found for step in x.steps),
    )  # fmt: skip


def _cast_constant(graph: Graph, expr: Any) -> np.ndarray | None:
    """The single 8-bit integer that is cast to float; None for anything else."""
    if not is_cast(graph, expr):
        return None
    array = graph.constant(graph.value(expr).args[0])
    return array if array is not None and array.size == 1 and str(array.dtype) in INTEGERS else None
