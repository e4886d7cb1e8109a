"""Layers without a kernel of ours: TVM's own legalisation, under our default schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df
from tvm_ext.schedules.default_schedule import schedule_prim_func

if TYPE_CHECKING:
    from tvm_ext.lower import _Lowering


def lower_generic(state: _Lowering, layer: Layer) -> None:
    """Legalise a layer's function and replay its calls into the program.

    Raises
    ------
    ModelError
        TVM has no implementation either, or one that isn't destination-passing.
    """
    function = layer.function
    with state.target.tvm:
        mod = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        mod = relax.backend.DispatchSortScan()(mod)
        mod = relax.transform.LegalizeOps()(mod)
    env: dict[Any, int] = {}
    for param, value in zip(mod["main"].params, layer.arguments, strict=True):
        env[param] = state.value(value, 0, layer.name)
    tuples: dict[Any, list[int]] = {}
    names: dict[str, str] = {}

    def buffer(expr: Any) -> int:
        if expr in env:
            return env[expr]
        array = df.value_of(expr)
        if array is None:
            raise ModelError(f"layer {layer.name}: can't lower {expr}")
        return state.constant(array)

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
            env[var] = state.program.view(buffer(expr.args[0]), df.shape_of(var))
        elif name in ("relax.call_tir", "relax.call_dps_packed"):
            callee, arguments = expr.args[0], expr.args[1]
            fields = arguments.fields if isinstance(arguments, relax.Tuple) else [arguments]
            args = [buffer(a) for a in fields]
            types = list(var.ty.fields) if isinstance(var.ty, relax.TupleType) else [var.ty]
            outs = [state.program.add(tuple(int(d) for d in t.shape), str(t.dtype)) for t in types]
            packed = name == "relax.call_dps_packed"
            if packed:
                kernel = str(callee.global_symbol)
            else:
                kernel = names.get(callee.name_hint, "")
                if not kernel:
                    scheduled = schedule_prim_func(mod[callee], state.target)
                    kernel = state.add_kernel(callee.name_hint, scheduled)
                    names[callee.name_hint] = kernel
            state.call(kernel, [*args, *outs], len(outs), layer.name, packed)
            if isinstance(var.ty, relax.TupleType):
                tuples[var] = outs
            else:
                env[var] = outs[0]
        else:
            raise ModelError(f"layer {layer.name}: TVM has no CPU implementation of {name or expr}")
    result = df.result(mod["main"])
    if isinstance(layer.output.ty, relax.TupleType):
        fields = tuples.get(result) or [buffer(f) for f in result.fields]
        state.tuples[layer.output] = fields
    else:
        state.define(layer.output, 0, buffer(result))
