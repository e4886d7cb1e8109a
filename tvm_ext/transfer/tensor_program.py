"""The TensorIR of a layer: its group legalised by TVM and fused into one function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.s_tir import Schedule, ScheduleError
from tvm.target import Target

from tvm_ext.extrema import LEGALIZATIONS
from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df
from tvm_ext.schedules.tuned import ProgramWorkload
from tvm_ext.schedules.workload import ViewWorkload
from tvm_ext.transfer.kernel_class_ops import class_ops

# Only the kind of a target tells which implementation an operator gets.
_CPU = Target("llvm")


@dataclass(frozen=True)
class LayerProgram:
    """A layer as one unscheduled function.

    Attributes
    ----------
    workload : ProgramWorkload
        Its function takes the layer's `arguments`, then `constants`, then the output, all in the
        model's own layout.
    constants : tuple of ndarray
    """

    workload: ProgramWorkload
    constants: tuple[np.ndarray, ...]


def tensor_program(layer: Layer) -> LayerProgram | str:
    """What TVM's default pipeline makes of a layer's group, before any schedule.

    Weights become arguments, so that layers of the same shapes share one function; scalars stay
    inside.

    Returns
    -------
    LayerProgram or str
        Or why there is none: the layer moves nothing, has several outputs, or an operator that
        isn't TensorIR on the CPU.
    """
    if isinstance(layer.workload, ViewWorkload):
        return "a view computes nothing"
    if isinstance(layer.output.ty, relax.TupleType):
        return f"it has {len(layer.output.ty.fields)} outputs; only 1"
    mod = tvm.IRModule({"main": layer.function.with_attr("global_symbol", "main")})
    with _CPU:
        mod = relax.transform.LegalizeOps(LEGALIZATIONS)(relax.backend.DispatchSortScan()(mod))
    for _, expr in df.bindings(mod["main"]):
        name = df.op_name(expr)
        if name and name != "relax.call_tir":
            return f"{name.removeprefix('relax.')} has no TensorIR implementation"
    mod, constants = _lifted(mod)
    fused = relax.transform.FuseTIR()(mod)
    functions = [f for f in fused.functions.values() if isinstance(f, tirx.PrimFunc)]
    if len(functions) != 1:
        return f"it is {len(functions)} TensorIR functions after fusion; only 1"
    if reason := _unschedulable(functions[0]):
        return reason
    return LayerProgram(
        ProgramWorkload.of(functions[0], class_ops(layer), layer.workload.flops), tuple(constants)
    )


def _unschedulable(function: tirx.PrimFunc) -> str:
    """Why a function isn't blocks inside loops, which schedules need; empty if it is."""
    schedule = Schedule(tvm.IRModule({"main": function}))
    try:
        blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    except ScheduleError:
        blocks = []
    if not blocks:
        return "its implementation has no blocks inside loops"
    for block in blocks:
        if len(schedule.get_loops(block)) != len(schedule.get(block).iter_vars):
            return f"its block {schedule.get(block).name_hint} isn't one statement inside loops"
    return ""


def _lifted(mod: tvm.IRModule) -> tuple[tvm.IRModule, list[np.ndarray]]:
    """A `main` that calls the group, whose constants have become parameters; and their values."""
    function = mod["main"]
    others = {gv: f for gv, f in mod.functions.items() if gv.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others))
    constants = _constants(function)
    weights: list[Any] = [
        relax.Var(f"w{i}", relax.TensorType(list(c.shape), str(c.dtype)))
        for i, c in enumerate(constants.values())
    ]
    by_memory = dict(zip(constants, weights, strict=True))
    params = [*function.params, *weights]

    def lift(expr: Any) -> Any:
        if (array := df.view_of(expr)) is not None:
            return by_memory[_memory(array)]
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([lift(f) for f in expr.fields])
        if isinstance(expr, relax.Call):
            return relax.Call(expr.op, [lift(a) for a in expr.args], expr.attrs, expr.ty_args)
        return expr

    env: dict[Any, Any] = {}
    with builder.function("group", params, attrs={"Primitive": True}, private=True):
        with builder.dataflow():
            for var, expr in df.bindings(function):
                env[var] = builder.emit(lift(df.substitute(expr, env)), var.name)
            output = builder.emit_output(lift(df.substitute(df.result(function), env)))
        builder.emit_func_output(output)
    group = builder.get().get_global_var("group")
    outer = [relax.Var(p.name, p.ty) for p in params]
    with builder.function("main", outer):
        with builder.dataflow():
            output = builder.emit_output(relax.Call(group, outer))
        builder.emit_func_output(output)
    return builder.get(), list(constants.values())


def _constants(function: relax.Function) -> dict[Any, np.ndarray]:
    """The constants that a function reads, each once, by where they are."""
    found: dict[Any, np.ndarray] = {}

    def visit(expr: Any) -> None:
        if (array := df.view_of(expr)) is not None:
            found.setdefault(_memory(array), array)
        elif isinstance(expr, relax.Call):
            for arg in expr.args:
                visit(arg)
        elif isinstance(expr, relax.Tuple):
            for part in expr.fields:
                visit(part)

    for _, expr in df.bindings(function):
        visit(expr)
    visit(df.result(function))
    return found


def _memory(array: np.ndarray) -> tuple[int, tuple[int, ...], str]:
    return array.ctypes.data, array.shape, str(array.dtype)
