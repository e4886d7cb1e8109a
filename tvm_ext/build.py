"""The pipeline, top to bottom: load, graph passes, plan, lower, compile."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tvm_ext import planner
from tvm_ext.assemble import assemble
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.errors import DatabaseError, TuningError
from tvm_ext.executable import Executable
from tvm_ext.fusion_database import FusionDatabase
from tvm_ext.fusion_profile import CostProfile, MeasuredProfile
from tvm_ext.grouped_model import GroupedModel, Model, Params, grouped
from tvm_ext.lower import Progress
from tvm_ext.passes.fusion.decisions import Profile
from tvm_ext.plan import Plan
from tvm_ext.plan_check import check_plan, given_plan
from tvm_ext.target import CpuTarget, resolve
from tvm_ext.transfer.bank import Bank
from tvm_ext.transfer.bank_offers import BankOffers

Target = str | Mapping[str, Any] | CpuTarget
TUNINGS = ("bank", "none")


def build(
    model: Model,
    target: Target = "native",
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    params: Params | None = None,
    plan: Plan | str | os.PathLike[str] | None = None,
    fusion_database: str | os.PathLike[str] | None = None,
    tuning: str = "bank",
    precision: str = "highest",
    accelerator: Accelerator | None = None,
    progress: Progress = lambda stage: None,
) -> Executable:
    """Compile a model to the fastest code that this library knows for a CPU.

    Parameters
    ----------
    model : path, onnx.ModelProto, torch.export.ExportedProgram or tvm.IRModule
        What `load_model` takes.
    target : str, dict or CpuTarget
        ``"native"``, an mcpu name such as ``"core-avx2"``, or an LLVM target.
    input_shapes : dict, optional
        Shapes of the inputs, needed where the model leaves them open.
    params : dict of str to array, or path, optional
        Weights that the model has as inputs, as `load_model` takes them.
    plan : Plan or path, optional
        Decisions to use in place of the planner's, as `plan()` gives them, perhaps edited.
    fusion_database : path, optional
        Decide by measurement whether to fuse where the mapping types leave it open, and keep the
        answers in this file; without it the cost model decides.
    tuning : str
        ``"bank"`` uses the measured schedules that are kept for the target's CPU, installed or in
        the file that the environment variable ``TVM_EXT_BANK`` names: of the same kernel where
        its measured time beats the cost model's estimate, of another kernel of its class where
        its time, scaled by the work, does. ``"none"`` doesn't. A given `plan` is followed as it is.
    precision : str
        As of `torch.set_float32_matmul_precision`. ``"highest"`` multiplies in float32.
        ``"high"`` allows algorithms that split each float32 factor into two bfloat16 terms, on
        CPUs with AMX, where they are expected to be faster: 16 bits of a factor count, and the
        outputs of whole models differ by up to some 1e-3 of the largest. A given `plan` has its
        own precision.
    accelerator : Accelerator, optional
        Offload what it takes of a quantised model; `tvm_ext.codegen.byoc.partition` says what it
        doesn't take, and why; so do the plan's notes. Each subgraph is one layer of the plan.
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
    DatabaseError
        The fusion database holds something else, or the target isn't this machine.
    TuningError
        `tuning` is something else, or ``TVM_EXT_BANK`` names no bank of the target's CPU.
    OptionError
        `precision` is something else.
    """
    _check_tuning(tuning)
    cpu = resolve(target, precision)
    given = None if plan is None else given_plan(plan)
    if given is not None:
        cpu = resolve(cpu, given.precision)
    cut = grouped(
        model, cpu, input_shapes, params, profile=_profile(cpu, fusion_database),
        accelerator=accelerator, progress=progress,
    )  # fmt: skip
    progress("plan")
    if given is None:
        given = _chosen(cut, cpu, tuning)
    else:
        check_plan(given, cut.layers, cpu)
    return assemble(cut.mod, cut.layers, given, cpu, cut.output_names, progress)


def plan(
    model: Model,
    target: Target = "native",
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    params: Params | None = None,
    fusion_database: str | os.PathLike[str] | None = None,
    tuning: str = "bank",
    precision: str = "highest",
    accelerator: Accelerator | None = None,
) -> Plan:
    """The decisions that `build` would make, without making code. Parameters as for `build`."""
    _check_tuning(tuning)
    cpu = resolve(target, precision)
    profile = _profile(cpu, fusion_database)
    cut = grouped(model, cpu, input_shapes, params, profile=profile, accelerator=accelerator)
    return _chosen(cut, cpu, tuning)


def _profile(cpu: CpuTarget, database: str | os.PathLike[str] | None) -> Profile:
    """What answers fusion's open questions."""
    if database is None:
        return CostProfile(cpu)
    if not cpu.is_host:
        raise DatabaseError(f"fusion can't be measured for {cpu.name}, which isn't this machine")
    return MeasuredProfile(cpu, FusionDatabase(database))


def _chosen(cut: GroupedModel, cpu: CpuTarget, tuning: str) -> Plan:
    bank = Bank.configured(cpu) if tuning == "bank" else None
    offers = BankOffers(bank, cut.layers, cpu) if bank else planner.no_offers
    return replace(planner.choose(cut.layers, cpu, offers), notes=cut.notes)


def _check_tuning(tuning: str) -> None:
    if tuning not in TUNINGS:
        raise TuningError(f"tuning={tuning!r}; allowed: {', '.join(TUNINGS)}")
