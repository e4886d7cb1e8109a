"""The pipeline, top to bottom: load, graph passes, plan, lower, compile."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm

from tvm_ext import planner
from tvm_ext.compile import compile_program
from tvm_ext.executable import Executable
from tvm_ext.frontend import load_model
from tvm_ext.layers import Layer, layers
from tvm_ext.lower import lower
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.plan import Plan
from tvm_ext.target import CpuTarget, resolve

Model = Any
Target = str | Mapping[str, Any] | CpuTarget
Progress = Callable[[str], None]


def build(
    model: Model,
    target: Target = "native",
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    plan: Plan | str | os.PathLike[str] | None = None,
    progress: Progress = lambda stage: None,
) -> Executable:
    """Compile a model to the fastest code that this library knows for a CPU.

    Parameters
    ----------
    model : path, onnx.ModelProto, torch.export.ExportedProgram or tvm.IRModule
    target : str, dict or CpuTarget
        ``"native"``, an mcpu name such as ``"core-avx2"``, or an LLVM target.
    input_shapes : dict, optional
        Shapes of the inputs, needed where the model leaves them open.
    plan : Plan or path, optional
        Decisions to use in place of the planner's, as `plan()` gives them, perhaps edited.
    progress : callable
        Told the name of each stage, and of each layer as it is lowered.

    Returns
    -------
    Executable
        LLVM makes its machine code when it first runs, a quarter of the whole time, or is saved.

    Raises
    ------
    ModelError, InputShapeError, UnsupportedOperatorsError
        The model can't be loaded.
    TargetError
        The target is unknown.
    PlanError
        The plan doesn't fit the model.
    """
    cpu = resolve(target)
    mod, found, names = _prepare(model, input_shapes, progress)
    chosen = _plan(plan, found, cpu, progress)
    progress("lower")
    lowered = lower(mod, found, chosen, cpu, names, progress)
    progress("compile")
    code = compile_program(lowered.program, lowered.kernels, cpu)
    return Executable(code, lowered.program, lowered.constants, chosen, cpu, lowered.kernels)


def plan(
    model: Model,
    target: Target = "native",
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> Plan:
    """The decisions that `build` would make, without making code. Parameters as for `build`."""
    cpu = resolve(target)
    _, found, _ = _prepare(model, input_shapes, lambda stage: None)
    return planner.choose(found, cpu)


def _prepare(
    model: Model, input_shapes: Mapping[str, Sequence[int]] | None, progress: Progress
) -> tuple[tvm.IRModule, list[Layer], list[str]]:
    """Load the model and cut it into layers; also its outputs' names."""
    progress("load")
    mod = load_model(model, input_shapes=input_shapes)
    names = [str(n) for n in mod["main"].attrs["tvm_ext.output_names"]]
    progress("graph passes")
    mod = graph_pipeline()(mod)
    return mod, layers(mod), names


def _plan(
    given: Plan | str | os.PathLike[str] | None,
    found: list[Layer],
    cpu: CpuTarget,
    progress: Progress,
) -> Plan:
    progress("plan")
    if given is None:
        return planner.choose(found, cpu)
    chosen = given if isinstance(given, Plan) else Plan.load(given)
    planner.check(chosen, found, cpu)
    return chosen
