"""Layers without a kernel of ours: TVM's own legalisation, under our default schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.extrema import LEGALIZATIONS
from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df
from tvm_ext.program_builder import ProgramBuilder
from tvm_ext.schedules.default_schedule import schedule_prim_func
from tvm_ext.target import CpuTarget


def lower_generic(
    builder: ProgramBuilder, layer: Layer, arguments: Sequence[int], target: CpuTarget
) -> list[int]:
    """Legalise a layer's function and replay its calls into a program.

    Parameters
    ----------
    builder : ProgramBuilder
    layer : Layer
    arguments : sequence of int
        Buffers of the layer's `arguments`, in the layout that Relax knows.
    target : CpuTarget

    Returns
    -------
    list of int
        The output's buffer, or those of its fields when it is a tuple.

    Raises
    ------
    ModelError
        TVM has no implementation either, or one that isn't destination-passing.
    """
    function = layer.function
    with target.tvm:
        mod = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        mod = relax.backend.DispatchSortScan()(mod)
        mod = relax.transform.LegalizeOps(LEGALIZATIONS)(mod)
    env: dict[Any, int] = dict(zip(mod["main"].params, arguments, strict=True))
    tuples: dict[Any, list[int]] = {}
    names: dict[str, str] = {}

    def buffer(expr: Any) -> int:
        if expr in env:
            return env[expr]
        array = df.value_of(expr)
        if array is None:
            raise ModelError(f"layer {layer.name}: can't lower {expr}")
        return builder.constant(array)

    for var, expr in df.bindings(mod["main"]):
        name = df.op_name(expr)
        if isinstance(expr, relax.TupleGetItem):
            env[var] = tuples[expr.tuple_value][expr.index]
        elif isinstance(expr, relax.Tuple):
            tuples[var] = [buffer(f) for f in expr.fields]
        elif isinstance(expr, relax.Var):
            if expr in tuples:
                tuples[var] = tuples[expr]
            else:
                env[var] = env[expr]
        elif name == "relax.reshape":
            env[var] = builder.view(buffer(expr.args[0]), df.shape_of(var))
        elif name in ("relax.call_tir", "relax.call_dps_packed"):
            callee, given = expr.args[0], expr.args[1]
            fields = given.fields if isinstance(given, relax.Tuple) else [given]
            args = [buffer(a) for a in fields]
            types = list(var.ty.fields) if isinstance(var.ty, relax.TupleType) else [var.ty]
            outs = [builder.buffer(t.shape, str(t.dtype)) for t in types]
            packed = name == "relax.call_dps_packed"
            if packed:
                kernel = str(callee.global_symbol)
            else:
                kernel = names.get(callee.name_hint, "")
                if not kernel:
                    scheduled = schedule_prim_func(mod[callee], target)
                    kernel = builder.kernel(callee.name_hint, scheduled)
                    names[callee.name_hint] = kernel
            builder.call(kernel, [*args, *outs], len(outs), layer.name, packed)
            if isinstance(var.ty, relax.TupleType):
                tuples[var] = outs
            else:
                env[var] = outs[0]
        else:
            raise ModelError(f"layer {layer.name}: TVM has no CPU implementation of {name or expr}")
    result = df.result(mod["main"])
    if isinstance(layer.output.ty, relax.TupleType):
        return tuples.get(result) or [buffer(f) for f in result.fields]
    return [buffer(result)]
