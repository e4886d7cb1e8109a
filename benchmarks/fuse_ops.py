"""TVM's own fusion, FuseOps, to compare with: its groups, and what it would run."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from tvm_ext.passes import FoldConstants
from tvm_ext.passes import dataflow as df
from tvm_ext.viz.fused_layers import FusedLayers, fused_layers

# On a function of TensorIR: which binding of `main` it is a kernel of.
_BINDING = "tvm_ext.binding"
_NAME = "binding_{}"


def tvm_fused_layers(mod: tvm.IRModule) -> FusedLayers:
    """What TVM's pipeline for CPUs makes of a module: kernels, and bytes between them.

    Batch norms are decomposed first, by TVM's pass for that, so that they can be fused. Constants
    are folded with numpy in place of TVM's FoldConstant, which compiles a kernel for each; what it
    leaves over isn't counted. A group of reshapes alone is a view, as RewriteDataflowReshape makes
    of it later, and no kernel.

    Parameters
    ----------
    mod : IRModule
        Relax operators in `main`: a model as loaded, or rewritten.

    Returns
    -------
    FusedLayers
    """
    passes = [
        relax.transform.CanonicalizeBindings(),
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        FoldConstants(),
        relax.transform.DeadCodeElimination(),
    ]
    return fused_layers(
        relax.transform.FuseOps()(_legalised(tvm.transform.Sequential(passes)(mod)))
    )


def partition(mod: tvm.IRModule) -> list[list[int]]:
    """FuseOps' groups of a module's operators.

    Parameters
    ----------
    mod : IRModule
        Relax operators in `main`.

    Returns
    -------
    list of list of int
        Positions of the bindings of each group, in order; every binding is in one group. A tuple's
        making or taking apart that isn't inside a group is one by itself.

    Raises
    ------
    RuntimeError
        FuseOps' groups don't correspond to groups of operators with one result each.
    """
    func = mod["main"]
    pairs = df.bindings(func)
    fused = relax.transform.FuseOps()(_tagged(_legalised(_numbered(func)), pairs))
    group_of: dict[int, int] = {}
    for number, (_, expr) in enumerate(df.bindings(fused["main"])):
        for index in _members(fused, expr):
            if group_of.setdefault(index, number) != number:
                raise RuntimeError(f"FuseOps takes {df.op_name(pairs[index][1])} apart")
    readers = df.uses(func)
    position = {var: i for i, (var, _) in enumerate(pairs)}
    # From the last: a tuple's parts are at hand before the tuple.
    for index in reversed(range(len(pairs))):
        var, expr = pairs[index]
        around = {group_of.get(position.get(v, -1), -1) for v in df.free_vars(expr)}
        after = {group_of.get(position.get(v, -1), -1) for v in readers.get(var, [])}
        if not isinstance(expr, relax.Call) and len(after) == 1 and after <= around - {-1}:
            group_of[index] = after.pop()
    groups: dict[tuple[bool, int], list[int]] = {}
    for index in range(len(pairs)):
        key = (True, group_of[index]) if index in group_of else (False, index)
        groups.setdefault(key, []).append(index)
    for group in groups.values():
        _check_result(group, pairs, readers, position)
    return sorted(groups.values(), key=lambda g: g[-1])


def _check_result(
    group: list[int],
    pairs: list[tuple[Any, Any]],
    readers: dict[Any, list[Any]],
    position: dict[Any, int],
) -> None:
    inside = set(group)
    for index in group[:-1]:
        users = readers.get(pairs[index][0], [])
        if not users or not {position.get(user) for user in users} <= inside:
            names = [df.op_name(pairs[i][1]) for i in group]
            raise RuntimeError(f"FuseOps' group {names} has another result than its last value")


def _legalised(mod: tvm.IRModule) -> tvm.IRModule:
    """Calls of TensorIR functions that know their pattern, as FuseOps wants them."""
    passes = [
        relax.backend.DispatchSortScan(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
    ]
    with tvm.target.Target("llvm"):
        return tvm.transform.Sequential(passes)(mod)


def _numbered(func: relax.Function) -> tvm.IRModule:
    """A copy of `main` whose variables are named by their position; aliases are gone."""
    builder = relax.BlockBuilder()
    env: dict[Any, Any] = {}
    with builder.function("main", list(func.params)):
        with builder.dataflow():
            for index, (var, expr) in enumerate(df.bindings(func)):
                new = df.substitute(expr, env)
                is_alias = isinstance(new, relax.Var)
                env[var] = new if is_alias else builder.emit(new, _NAME.format(index))
            output = builder.emit_output(df.substitute(df.result(func), env))
        builder.emit_func_output(output)
    return builder.get()


def _tagged(mod: tvm.IRModule, pairs: list[tuple[Any, Any]]) -> tvm.IRModule:
    """Give every call its own function, which knows the position of the binding it came from."""
    # An operator may become several bindings: the last one keeps its name.
    names = [_NAME.format(i) for i, (_, e) in enumerate(pairs) if not isinstance(e, relax.Var)]
    left = list(reversed(names))

    def rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
        name = left[-1] if left else ""
        if var.name == name:
            left.pop()
        if df.op_name(expr) != "relax.call_tir":
            return expr
        function = mod[expr.args[0]].with_attr(_BINDING, int(name.rsplit("_", 1)[1]))
        target = builder.add_func(function, expr.args[0].name_hint)
        return relax.Call(expr.op, [target, *expr.args[1:]], expr.attrs, expr.ty_args)

    tagged = df.rebuild(mod, rewrite)
    if left:
        raise RuntimeError(f"{left[-1]} is lost in TVM's operators")
    return tagged


def _members(mod: tvm.IRModule, expr: Any) -> list[int]:
    """The bindings whose kernels an expression of FuseOps' `main` runs."""
    if not isinstance(expr, relax.Call):
        return []
    if isinstance(expr.op, tvm.ir.GlobalVar):
        return [i for _, inner in df.bindings(mod[expr.op]) for i in _members(mod, inner)]
    if df.op_name(expr) == "relax.call_tir":
        return [int(mod[expr.args[0]].attrs[_BINDING])]
    return []
