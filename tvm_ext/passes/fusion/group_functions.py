"""Groups of bindings as private functions that `main` calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_form import is_light

Pair = tuple[Any, Any]


def outline(mod: tvm.IRModule, groups: Sequence[Sequence[Pair]]) -> tvm.IRModule:
    """Put each group of `main`'s bindings into a function of its own.

    Parameters
    ----------
    mod : IRModule
    groups : sequence of sequence of (Var, expression)
        All bindings of `main`, each group with its result last, ordered by the results.

    Returns
    -------
    IRModule
        `main` calls functions with the attribute ``Primitive``, whose weights are constants inside
        them. A binding's variable, ``<operator>_<number>``, is the layer's name. What isn't a call
        (tuples, their fields) stays in `main`.
    """
    func = mod["main"]
    others = {gv: f for gv, f in mod.functions.items() if gv.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others))
    env: dict[Any, Any] = {}
    functions = [_function(group, number) for number, group in enumerate(groups)]
    with builder.function("main", list(func.params), attrs=dict(func.attrs or {})):
        with builder.dataflow():
            for group, (name, function, arguments) in zip(groups, functions, strict=True):
                var, expr = group[-1]
                if function is None:
                    env[var] = builder.emit(df.substitute(expr, env), var.name)
                    continue
                target = builder.add_func(function, f"group_{name}")
                call = relax.Call(target, [df.substitute(a, env) for a in arguments])
                # Equal functions are shared, so it is the variable that names the layer.
                env[var] = builder.emit(call, name)
            output = builder.emit_output(df.substitute(df.result(func), env))
        builder.emit_func_output(output)
    return builder.get()


def alone(pairs: Sequence[Pair]) -> tvm.IRModule:
    """A module that computes the last of some bindings from what they read outside.

    Its `main` has the same bindings in the same order, and a parameter for each outside value.
    """
    builder = relax.BlockBuilder()
    _compute(builder, "main", pairs)
    return builder.get()


def outside(pairs: Sequence[Pair]) -> list[Any]:
    """The variables that some bindings read and none of them is, in order."""
    inside = {var for var, _ in pairs}
    return list(dict.fromkeys(v for _, e in pairs for v in df.free_vars(e) if v not in inside))


def _function(group: Sequence[Pair], number: int) -> tuple[str, relax.Function | None, list[Any]]:
    """Name, function and outside arguments of one group; no function for plain tuple plumbing.

    Nor for a call of a function that an earlier pass made.
    """
    named = next((expr for _, expr in group if not is_light(expr)), group[0][1])
    if not isinstance(named, relax.Call) or isinstance(named.op, tvm.ir.GlobalVar):
        return "", None, []
    name = f"{_short_name(named)}_{number}"
    builder = relax.BlockBuilder()
    _compute(builder, name, group, attrs={"Primitive": True}, private=True)
    # The builder renames the function where a variable inside has its name.
    (function,) = builder.get().functions.values()
    return name, function, outside(group)


def _compute(builder: relax.BlockBuilder, name: str, pairs: Sequence[Pair], **options: Any) -> None:
    """Add a function of what some bindings read outside, whose result is the last of them."""
    env: dict[Any, Any] = {v: relax.Var(f"p{i}", v.ty) for i, v in enumerate(outside(pairs))}
    with builder.function(name, list(env.values()), **options):
        with builder.dataflow():
            *inner, (var, expr) = pairs
            for each, value in inner:
                env[each] = builder.emit(df.substitute(value, env), each.name)
            output = builder.emit_output(df.substitute(expr, env), var.name)
        builder.emit_func_output(output)


def _short_name(call: relax.Call) -> str:
    if isinstance(call.op, tvm.ir.Op):
        return str(call.op.name).rsplit(".", 1)[-1]
    return "call"
