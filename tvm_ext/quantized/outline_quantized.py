"""Puts each quantised operator into a function of its own.

dequantize -> conv2d, matmul, pool or elementwise operator (+ bias, batch norm, clamp) -> quantize,
and what `QLinearConv` and its like become, are one call in `main`. The function holds the model's
operators as they are; its attribute `QUANTIZED` says what they compute on the integers, and
`CONSTANTS` has the arrays for it. So the planner can pick a kernel of integers, and TVM's own
operators remain a way to compute the layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc.graph import Graph, has_integers
from tvm_ext.codegen.byoc.match import Match, Refusal
from tvm_ext.codegen.byoc.matcher import Matcher, matched
from tvm_ext.codegen.byoc.regions import Region
from tvm_ext.codegen.byoc.subgraph import Subgraph, make_subgraph, read_subgraph
from tvm_ext.codegen.network_moves import Concat, Reshape
from tvm_ext.passes import dataflow as df
from tvm_ext.quantized.read_layer import IntegerLayer, integer_layer

QUANTIZED, CONSTANTS = "tvm_ext.quantized", "tvm_ext.quantized_constants"
# Of an accelerator that takes all that the matcher knows.
_ANYTHING = Accelerator(depthwise="hardware")
# Layers that only move integers: the same operator on them.
_MOVES = (Reshape, Concat)


def quantized_function(function: relax.Function) -> IntegerLayer | None:
    """What a function of `OutlineQuantized` computes on integers; None for any other function."""
    attrs = function.attrs
    if attrs is None or QUANTIZED not in attrs:
        return None
    arrays = [array.numpy() for array in attrs[CONSTANTS]]
    layer = integer_layer(read_subgraph(str(attrs[QUANTIZED]), arrays))
    assert isinstance(layer, IntegerLayer), layer
    return layer


@tvm.transform.module_pass(opt_level=0, name="OutlineQuantized")
class OutlineQuantized:
    """Outline every quantised operator of `main` that a kernel of integers computes.

    Attributes
    ----------
    refusals : list of Refusal
        Of the last module: operators on quantised tensors that are computed on real values, and
        why.
    """

    def __init__(self) -> None:
        self.refusals: list[Refusal] = []

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`; a module without 8-bit integers stays as it is."""
        self.refusals = []
        if not has_integers(mod["main"]):
            return mod
        mod, matcher = matched(mod, _ANYTHING)
        self.refusals = list(matcher.refusals.values())
        chosen = {}
        for var, match in matcher.matches.items():
            made = _subgraph(match)
            if isinstance(made, Subgraph):
                chosen[var] = made
            else:
                self.refusals.append(Refusal(match.name, match.operators[0], made))
        new = _rewritten(mod, matcher, chosen)
        return relax.transform.DeadCodeElimination()(new)


def _subgraph(match: Match) -> Subgraph | str:
    """One match as a network, or why there is no kernel for it."""
    region = Region((match,), match.inputs, (match.output,))
    made = make_subgraph(region, match.name, _ANYTHING)
    if len(match.layers) == 1 and isinstance(match.layers[0], _MOVES):
        return made
    found = integer_layer(made)
    return found if isinstance(found, str) else made


def _rewritten(mod: tvm.IRModule, matcher: Matcher, chosen: dict[Any, Subgraph]) -> tvm.IRModule:
    """`main` with one call for each chosen match."""
    graph, matches = matcher.graph, matcher.matches
    func = graph.func
    others = {gv: f for gv, f in mod.functions.items() if gv.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others))
    env: df.Env = {}
    functions = {
        var: _function(graph, matches[var], subgraph, number)
        for number, (var, subgraph) in enumerate(chosen.items())
        if not isinstance(subgraph.network.layers[0], _MOVES)
    }
    with builder.function("main", list(func.params), attrs=dict(func.attrs or {})):
        with builder.dataflow():
            for var, value in graph.pairs:
                if var in functions:
                    name, function = functions[var]
                    given = [env.get(x.var, x.var) for x in matches[var].inputs]
                    target = builder.add_func(function, f"group_{name}")
                    env[var] = builder.emit(relax.Call(target, given), name)
                elif var in chosen and df.op_name(value) == "relax.quantize":
                    env[var] = builder.emit(_moved(matches[var], chosen[var], env), var.name)
                else:
                    env[var] = builder.emit(df.substitute(value, env), var.name)
            output = builder.emit_output(df.substitute(df.result(func), env))
        builder.emit_func_output(output)
    return builder.get()


def _moved(match: Match, subgraph: Subgraph, env: df.Env) -> relax.Call:
    """The integers that a match moves."""
    layer, network = subgraph.network.layers[0], subgraph.network
    given = {x.name: env.get(x.var, x.var) for x in match.inputs}
    if isinstance(layer, Concat):
        return relax.op.concat([given[name] for name in layer.inputs], 1)
    (source,) = (given[name] for name in network.inputs)
    return relax.op.reshape(source, df.shape_of(match.output.var))


def _function(
    graph: Graph, match: Match, subgraph: Subgraph, number: int
) -> tuple[str, relax.Function]:
    """The model's operators between a match's inputs and its output, as a function."""
    env: df.Env = {x.var: relax.Var(f"p{i}", x.var.ty) for i, x in enumerate(match.inputs)}
    needed: set[Any] = set()
    waiting = [match.output.var]
    while waiting:
        var = waiting.pop()
        if var not in needed and var not in env:
            needed.add(var)
            waiting.extend(df.free_vars(graph.bound(var)))
    name = f"quantized_{match.operators[0].rsplit('.', 1)[-1]}_{number}"
    params = [env[x.var] for x in match.inputs]
    builder = relax.BlockBuilder()
    with builder.function(name, params, attrs={"Primitive": True}, private=True):
        with builder.dataflow():
            *inner, last = sorted(needed, key=graph.order.__getitem__)
            for var in inner:
                env[var] = builder.emit(df.substitute(graph.bound(var), env), var.name)
            value = df.substitute(graph.bound(last), env)
            output = builder.emit_output(value, last.name)
        builder.emit_func_output(output)
    (function,) = builder.get().functions.values()
    arrays = [tvm.runtime.tensor(np.ascontiguousarray(a)) for a in subgraph.arrays()]
    function = function.with_attr(QUANTIZED, subgraph.document()).with_attr(CONSTANTS, arrays)
    return name, function
