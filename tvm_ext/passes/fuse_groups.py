"""Cut `main` into layers: an anchor (convolution, matmul, pool, ...) with the elementwise
operators that follow it, so that these run on the anchor's result while it is in a register.

After the pass every binding of `main` calls a private function, whose weights are constants inside
it; the binding's variable is the layer's name. A group is legal when

1. all its operators after the anchor are elementwise with the anchor's shape,
2. no value inside it is read outside, except the last,
3. no operand from outside depends on a value inside (the call graph stays acyclic),
4. the result has the anchor's type, which is what the anchor's kernel writes,
5. no value goes through more than `_MAX_NESTED` transcendental functions one after the other: TVM
   expands their expressions into each other, and takes several times as long for each one more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import scalar_name

# Anchors whose kernels take an epilogue.
FUSABLE_ANCHORS = frozenset(
    {
        "relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d", "relax.matmul",
        "relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose", "relax.nn.conv3d_transpose",
    }
)  # fmt: skip
_MAX_OPS = 16
# How much of `_MAX_NESTED` a function takes: under a convolution two sigmoids in a row compile in a
# second, two exponentials in half a minute, two softplus in three.
_NESTED = {
    **dict.fromkeys(
        (
            "log", "tanh", "sigmoid", "silu", "sinh", "cosh", "asinh", "acosh",
            "atanh", "gelu_tanh", "power", "mod", "floor_mod",
        ), 1,
    ),
    "erf": 2, "gelu": 2, "exp": 2, "softplus": 2,
}  # fmt: skip
_MAX_NESTED = 2


@tvm.transform.module_pass(opt_level=0, name="FuseGroups")
class FuseGroups:
    """Put every operator of `main` into exactly one group function."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Group `main`; functions are named `<anchor>_<index>` in execution order."""
        func = mod["main"]
        pairs = df.bindings(func)
        groups = _grow_all(func, pairs)
        return _emit(mod, func, pairs, groups)


def _grow_all(func: relax.Function, pairs: list[tuple[Any, Any]]) -> list[list[int]]:
    """Indices of the bindings of each group, ordered by the group's last binding."""
    readers = df.uses(func)
    position = {var: i for i, (var, _) in enumerate(pairs)}
    taken: set[int] = set()
    groups = []
    for index, (_, expr) in enumerate(pairs):
        if index in taken:
            continue
        fusable = df.op_name(expr) in FUSABLE_ANCHORS or scalar_name(expr)
        group = _grow(index, pairs, readers, position, taken) if fusable else [index]
        taken.update(group)
        groups.append(group)
    return sorted(groups, key=lambda g: g[-1])


def _grow(
    anchor: int,
    pairs: list[tuple[Any, Any]],
    readers: dict[Any, list[Any]],
    position: dict[Any, int],
    taken: set[int],
) -> list[int]:
    """The longest legal group that starts at `anchor`."""
    shape = df.shape_of(pairs[anchor][0])
    # A purely elementwise kernel takes the type of its last value.
    dtype = "" if scalar_name(pairs[anchor][1]) else df.dtype_of(pairs[anchor][0])
    group, best = [anchor], [anchor]
    inside = {pairs[anchor][0]}
    nested = {pairs[anchor][0]: _nesting(pairs[anchor][1], {})}
    made = {pairs[anchor][0]: scalar_name(pairs[anchor][1])}
    tainted: set[Any] = set()
    for index in range(anchor + 1, len(pairs)):
        var, expr = pairs[index]
        sources = set(df.free_vars(expr))
        if not sources & (inside | tainted):
            continue
        depth = max(nested.get(v, 0) for v in sources) + _nesting(expr, made)
        legal = (
            index not in taken
            and depth <= _MAX_NESTED
            and not sources & tainted
            and bool(scalar_name(expr))
            and df.shape_of(var) == shape
        )
        if not legal:
            tainted.add(var)
        else:
            group.append(index)
            inside.add(var)
            nested[var], made[var] = depth, scalar_name(expr)
            writable = not dtype or df.dtype_of(var) == dtype
            if writable and _single_exit(group, pairs, readers, position):
                best = list(group)
        if len(group) > _MAX_OPS or not _open(inside, readers, tainted):
            break
    return best


def _nesting(expr: Any, made: dict[Any, str]) -> int:
    """How much of `_MAX_NESTED` an operator takes; Mish's tanh(softplus(x)) is one function."""
    name = scalar_name(expr)
    if name == "tanh" and made.get(expr.args[0]) == "softplus":
        return 0
    return _NESTED.get(name, 0)


def _single_exit(
    group: list[int],
    pairs: list[tuple[Any, Any]],
    readers: dict[Any, list[Any]],
    position: dict[Any, int],
) -> bool:
    """Whether only the last value of the group is read outside it."""
    members = set(group)
    return all(
        user is not None and position[user] in members
        for index in group[:-1]
        for user in readers.get(pairs[index][0], [])
    )


def _open(inside: set[Any], readers: dict[Any, list[Any]], tainted: set[Any]) -> bool:
    """Whether some value inside still has a reader that might join."""
    return any(
        user is not None and user not in inside and user not in tainted
        for var in inside
        for user in readers.get(var, [])
    )


def _emit(
    mod: tvm.IRModule,
    func: relax.Function,
    pairs: list[tuple[Any, Any]],
    groups: list[list[int]],
) -> tvm.IRModule:
    others = {gv: f for gv, f in mod.functions.items() if gv.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others))
    env: dict[Any, Any] = {}
    functions = []
    for number, group in enumerate(groups):
        members = [pairs[i] for i in group]
        functions.append(_group_function(members, number))
    with builder.function("main", list(func.params), attrs=dict(func.attrs or {})):
        with builder.dataflow():
            for group, (name, function, arguments) in zip(groups, functions, strict=True):
                var = pairs[group[-1]][0]
                if function is None:
                    env[var] = builder.emit(df.substitute(pairs[group[-1]][1], env), var.name)
                    continue
                target = builder.add_func(function, f"group_{name}")
                call = relax.Call(target, [df.substitute(a, env) for a in arguments])
                # Equal functions are shared, so it is the variable that names the layer.
                env[var] = builder.emit(call, name)
            output = builder.emit_output(df.substitute(df.result(func), env))
        builder.emit_func_output(output)
    return builder.get()


def _group_function(
    members: list[tuple[Any, Any]], number: int
) -> tuple[str, relax.Function | None, list[Any]]:
    """Name, function and outside arguments of one group; no function for plain tuple plumbing."""
    anchor = members[0][1]
    if not isinstance(anchor, relax.Call):
        return "", None, []
    name = f"{_short_name(anchor)}_{number}"
    inside = {var for var, _ in members}
    arguments = _unique(v for _, expr in members for v in df.free_vars(expr) if v not in inside)
    params = [relax.Var(f"p{i}", a.ty) for i, a in enumerate(arguments)]
    env: dict[Any, Any] = dict(zip(arguments, params, strict=True))
    builder = relax.BlockBuilder()
    with builder.function(name, params, attrs={"Primitive": True}, private=True):
        with builder.dataflow():
            for var, expr in members:
                env[var] = builder.emit(df.substitute(expr, env), var.name)
            output = builder.emit_output(env[members[-1][0]])
        builder.emit_func_output(output)
    return name, builder.get()[name], arguments


def _short_name(call: relax.Call) -> str:
    if isinstance(call.op, tvm.ir.Op):
        return str(call.op.name).rsplit(".", 1)[-1]
    return "call"


def _unique(items: Iterable[Any]) -> list[Any]:
    seen: dict[Any, None] = {}
    for item in items:
        seen.setdefault(item)
    return list(seen)
