"""``QLinearAdd`` and ``QLinearMul`` as the importer writes them, rounded as ONNX Runtime does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_ext.codegen.arithmetic import shifted_factor, shifted_offset
from tvm_ext.codegen.byoc.graph import Graph, Quantized, Refused
from tvm_ext.codegen.byoc.integer_steps import Chain, centred
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.network_operators import Add, Multiply
from tvm_ext.passes import dataflow as df


@dataclass(frozen=True)
class IntegerSum:
    """``round(a * scales[0] + (b * scales[1] + offset))``.

    Attributes
    ----------
    data : (Var, Var)
    scales : (float, float)
    offset : float
        Of values in the model's own type.
    inside, before : sequence of Var
    """

    data: tuple[Any, Any]
    scales: tuple[float, float]
    offset: float
    inside: list[Any]
    before: tuple[Any, ...]
    operator: str = "add"

    def result_zero(self, zeros: tuple[int, int]) -> np.ndarray:
        """The result's zero point, which the offset holds."""
        real = self.offset + sum(z * s for z, s in zip(zeros, self.scales, strict=True))
        return np.asarray(np.rint(real), "int64")

    def add(self, layers: LayerBuilder, a: Quantized, b: Quantized) -> None:
        """The layer."""
        _check_shapes(a, b)
        unsigned = layers.output.unsigned
        offset = shifted_offset(self.scales, self.offset) if unsigned else self.offset
        names = layers.read(a), layers.read(b)
        layers.add(Add, names, layers.name, scales=self.scales, offset=offset)


@dataclass(frozen=True)
class IntegerProduct:
    """``round((a - za) * (b - zb) * scale + zy)``; attributes as of `IntegerSum`."""

    data: tuple[Any, Any]
    scale: float
    zero_point: int
    inside: list[Any]
    before: tuple[Any, ...]
    operator: str = "multiply"

    def result_zero(self, zeros: tuple[int, int]) -> np.ndarray:
        """The result's zero point."""
        return np.asarray(self.zero_point)

    def add(self, layers: LayerBuilder, a: Quantized, b: Quantized) -> None:
        """The layer."""
        _check_shapes(a, b)
        zeros = (a.zero_point, b.zero_point, layers.output.zero_point)
        scale = shifted_factor(self.scale, zeros) if layers.output.unsigned else self.scale
        layers.add(Multiply, (layers.read(a), layers.read(b)), layers.name, scale=scale)


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
    operands = [centred(graph, term.args[0]) for term in terms]
    constants = [graph.constant(x) for x in (terms[0].args[1], terms[1].args[1], right.args[1])]
    if operands[0] is None or operands[1] is None or any(c is None for c in constants):
        return None
    scale_a, scale_b, offset = (float(np.asarray(c).reshape(())) for c in constants)
    before = (total.args[1], total.args[0], right.args[0], *operands[0].steps, *operands[1].steps)
    data = (operands[0].var, operands[1].var)
    return IntegerSum(data, (scale_a, scale_b), offset, chain.inside, before)


def integer_product(graph: Graph, cast: Any) -> IntegerProduct | None:
    """The parts of a product that a cast to 8 bits ends; None for anything else."""
    chain = Chain(graph)
    shifted = chain.last(cast.args[0], "clip", "round", "add")
    scaled = chain.below(shifted, "multiply")
    product = chain.below(scaled, "astype", "multiply")
    if product is None:
        return None
    operands = [centred(graph, x) for x in product.args]
    zero, scale = (graph.constant(call.args[1]) for call in (shifted, scaled))
    if operands[0] is None or operands[1] is None or zero is None or scale is None:
        return None
    return IntegerProduct(
        (operands[0].var, operands[1].var), float(scale.reshape(())), int(zero.reshape(())),
        chain.inside, (*operands[0].steps, *operands[1].steps),
    )  # fmt: skip


def _check_shapes(a: Quantized, b: Quantized) -> None:
    if a.shape != b.shape:
        raise Refused(f"shapes {a.shape} and {b.shape}; allowed: equal ones")
