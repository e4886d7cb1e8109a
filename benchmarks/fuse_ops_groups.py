"""A pass that groups operators as TVM's FuseOps does, in the form that our own fusion has."""

from __future__ import annotations

from itertools import count
from typing import Any

import tvm
from tvm import relax

from benchmarks.fuse_ops import partition
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.group_functions import alone, outline, outside


@tvm.transform.module_pass(opt_level=0, name="FuseOpsGroups")
class FuseOpsGroups:
    """Group `main` as TVM's FuseOps does, in the form that our own fusion has.

    `graph_pipeline` takes it in place of that.

    Parameters
    ----------
    split : bool
        Cut each group into those that our kernels take, with our own fusion, which sees that group
        alone. Otherwise there are groups that no kernel takes.
    fusion : pass, optional
        What cuts; `UniversalFusion()` by default.

    Raises
    ------
    RuntimeError
        See `benchmarks.fuse_ops.partition`.
    """

    def __init__(self, split: bool = True, fusion: Any = None) -> None:
        self.split = split
        self.fusion = fusion or UniversalFusion()

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Group `main`; functions are named as those of our own fusion."""
        groups = partition(mod)
        if self.split:
            return _cut(mod, groups, self.fusion)
        pairs = df.bindings(mod["main"])
        return outline(mod, [[pairs[i] for i in group] for group in groups])


def _cut(mod: tvm.IRModule, groups: list[list[int]], fusion: Any) -> tvm.IRModule:
    """Let a fusion pass group each group's operators, as if there were no others."""
    func = mod["main"]
    pairs = df.bindings(func)
    builder = relax.BlockBuilder()
    env: dict[Any, Any] = {}
    numbers = count()
    with builder.function("main", list(func.params), attrs=dict(func.attrs or {})):
        with builder.dataflow():
            for group in groups:
                members = [pairs[i] for i in group]
                var, expr = members[-1]
                if not isinstance(expr, relax.Call):
                    env[var] = builder.emit(df.substitute(expr, env), var.name)
                    continue
                part = fusion(alone(members))
                given = [env.get(v, v) for v in outside(members)]
                inner = dict(zip(part["main"].params, given, strict=True))
                for value, piece in df.bindings(part["main"]):
                    new = df.substitute(piece, inner)
                    name = str(value.name)
                    if isinstance(new, relax.Call):
                        name = f"{name.rsplit('_', 1)[0]}_{next(numbers)}"
                        target = builder.add_func(part[new.op], f"group_{name}")
                        new = relax.Call(target, list(new.args))
                    inner[value] = new if isinstance(new, relax.Var) else builder.emit(new, name)
                env[var] = df.substitute(df.result(part["main"]), inner)
            output = builder.emit_output(df.substitute(df.result(func), env))
        builder.emit_func_output(output)
    return builder.get()
