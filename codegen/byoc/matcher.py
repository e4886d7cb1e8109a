"""Finds the operators of a function that the accelerator takes, and why it doesn't take others."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc import limits, moves
from tvm_ext.codegen.byoc.epilogue import epilogue_of
from tvm_ext.codegen.byoc.graph import INTEGERS, Graph, Quantized, Refused
from tvm_ext.codegen.byoc.integer_form import add_integer_form, integer_form
from tvm_ext.codegen.byoc.integer_pointwise import integer_product, integer_sum
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.byoc.match import Match, Refusal
from tvm_ext.codegen.byoc.patterns import BY_OPERATOR
from tvm_ext.codegen.byoc.scales import moves_integers, scale_of, zero_of
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.simplify_batch_norm import SimplifyBatchNorm


def matched(mod: tvm.IRModule, accelerator: Accelerator) -> tuple[tvm.IRModule, Matcher]:
    """The matches of `main`, and the module that they are about: its batch norms are folded."""
    prepare = [relax.transform.CanonicalizeBindings(), SimplifyBatchNorm()]
    mod = tvm.transform.Sequential(prepare)(mod)
    return mod, Matcher(Graph(mod["main"]), accelerator)


class Matcher:
    """Matches of one function.

    Attributes
    ----------
    matches : dict of Var to Match
        By the 8-bit value that each computes, in the function's order.
    refusals : dict of Var to Refusal
        By the value that the refused operator computes.
    epilogues : set of Var
        What stays on the CPU because the operator before it does.
    """

    def __init__(self, graph: Graph, accelerator: Accelerator) -> None:
        self.graph, self.accelerator = graph, accelerator
        self.matches: dict[Any, Match] = {}
        self.refusals: dict[Any, Refusal] = {}
        self.epilogues: set[Any] = set()
        # The value and operator that a refusal would be about.
        self._at: tuple[Any, Any] = (None, None)
        for var, value in graph.pairs:
            if isinstance(var.ty, relax.TensorType) and df.dtype_of(var) in INTEGERS:
                self._visit(var, value)

    def refuse(self, match: Match, reason: str) -> None:
        """Take a match back."""
        output = match.output.var
        del self.matches[output]
        at, *others = reversed((output, *match.inside))
        self.epilogues.update(others)
        self.refusals[at] = Refusal(self.graph.name(at), match.operators[0], reason)

    def _visit(self, var: Any, value: Any) -> None:
        self._at = var, value
        try:
            match = self._match(var, value)
            if match is not None:
                self._check(match)
                self.matches[var] = match
        except Refused as reason:
            at, call = self._at
            operator = df.op_name(call).removeprefix("relax.")
            self.refusals[at] = Refusal(self.graph.name(at), operator, str(reason))

    def _match(self, var: Any, value: Any) -> Match | None:
        name = df.op_name(value)
        if name == "relax.quantize":
            return self._quantized(var, value)
        if name == "relax.astype":
            return self._integer_product(var, value)
        if moves_integers(value):
            return self._integer_move(var, value)
        return None

    def _quantized(self, var: Any, value: Any) -> Match | None:
        y = self.graph.activation(var, value.args[1], value.args[2])
        self._at = value.args[0], self.graph.value(value.args[0])
        epilogue = epilogue_of(self.graph, value)
        if epilogue.anchor is None:
            return None
        if epilogue.inside:
            self._at = epilogue.inside[-1], self.graph.value(epilogue.inside[-1])
            self.epilogues.update(epilogue.inside[:-1])
        short = df.op_name(epilogue.anchor).removeprefix("relax.")
        pattern = BY_OPERATOR.get(short)
        if pattern is None:
            raise Refused("the accelerator has no such operator")
        if epilogue.steps and not pattern.affine:
            raise Refused(f"a constant {epilogue.steps[0][0]} behind it; allowed: ReLU, Clip")
        layers = LayerBuilder(y, epilogue.clamp(y))
        pattern.build(self.graph, epilogue, layers)
        return _match(layers, tuple(epilogue.operators) or ("requantize",), epilogue.inside)

    def _integer_product(self, var: Any, value: Any) -> Match | None:
        form = integer_form(self.graph, value)
        if form is None:
            return self._integer_pointwise(var, value)
        self._at = form.inside[-1], form.call
        self._only_reader((var, *form.inside[:-1], *form.before), form.inside)
        layers = LayerBuilder(self._integers(var, form.y_zero))
        add_integer_form(layers, form, self._integers(form.data, form.x_zero))
        operator = df.op_name(form.call).removeprefix("relax.")
        return _match(layers, (operator,), form.inside)

    def _integer_pointwise(self, var: Any, value: Any) -> Match | None:
        form = integer_sum(self.graph, value) or integer_product(self.graph, value)
        if form is None:
            return None
        self._at = form.inside[-1], self.graph.value(form.inside[-1])
        self._only_reader((var, *form.inside[:-1], *form.before), form.inside)
        xs = [self._operand(*pair) for pair in zip(form.data, form.zeros, strict=True)]
        zero = form.result_zero([x.zero_point + x.shift for x in xs])
        y = self._operand(var, None if zero is None else np.asarray(zero))
        layers = LayerBuilder(y)
        form.add(layers, xs)
        return _match(layers, (form.operator,), form.inside)

    def _operand(self, var: Any, zero: np.ndarray | None) -> Quantized:
        """Integers of a sum or product: whose zero point it, their source or their readers say."""
        if zero is None:
            zero = self._zero_point(var)
        if zero is None:
            zero = zero_of(self.graph, var)
        if zero is None:
            name = self.graph.name(var)
            raise Refused(f"nothing tells the zero point of {name}; allowed: a known one")
        return self._integers(var, zero)

    def _only_reader(self, around: tuple[Any, ...], inside: list[Any]) -> None:
        self.epilogues.update(around)
        if odd := [x for x in inside if not self.graph.read_once(x)]:
            raise Refused(f"its value {odd[0].name} is read by others; allowed: by rescaling alone")

    def _integer_move(self, var: Any, value: Any) -> Match | None:
        """A pool, resize or reshape of integers: what they stand for is known from their source."""
        source = value.args[0]
        if source not in self.graph.order:
            return None
        zero = self._zero_point(source)
        if zero is None:
            return None
        x, y = self._integers(source, zero), self._integers(var, zero)
        layers = LayerBuilder(y)
        if df.is_view(value):
            moves.add_reshape(layers, x)
        elif df.op_name(value) == "relax.image.resize2d":
            moves.add_resize(layers, value, x)
        else:
            moves.add_max_pool(layers, value, x)
        return _match(layers, (df.op_name(value).removeprefix("relax."),), [])

    def _integers(self, var: Any, zero_point: np.ndarray) -> Quantized:
        if np.size(zero_point) != 1:
            raise Refused("an activation with a zero point a channel; allowed: one a tensor")
        unsigned = df.dtype_of(var) == "uint8"
        zero = int(np.reshape(zero_point, ())) - 128 * unsigned
        scale = scale_of(self.graph, var)
        return Quantized(var, self.graph.name(var), df.shape_of(var), unsigned, zero, scale)

    def _zero_point(self, var: Any) -> np.ndarray | None:
        """In the model's own type; None where nothing says it."""
        if var in self.matches:
            y = self.matches[var].output
            return np.asarray(y.zero_point + y.shift)
        value = self.graph.value(var)
        if df.op_name(value) == "relax.quantize":
            return self.graph.constant(value.args[2])
        return None

    def _check(self, match: Match) -> None:
        if len({x.unsigned for x in (match.output, *match.inputs)}) > 1:
            raise Refused("it mixes int8 and uint8 activations; allowed: one of them")
        for layer in match.layers:
            reason = limits.refusal(layer, match.tensors, match.constants, self.accelerator)
            if reason:
                raise Refused(reason)
        if len({spec.shape[0] for spec in match.tensors.values()}) > 1:
            raise Refused("it changes the first axis; allowed: it stays the batch")


def _match(layers: LayerBuilder, operators: tuple[str, ...], inside: list[Any]) -> Match:
    return Match(
        layers.output, tuple(layers.inputs), tuple(layers.layers), layers.tensors,
        layers.constants, operators, tuple(inside),
    )  # fmt: skip
