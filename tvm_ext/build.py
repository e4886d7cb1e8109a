"""The pipeline, top to bottom: load, graph passes, plan, lower, compile."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import tvm

from tvm_ext import planner
from tvm_ext.assemble import assemble
from tvm_ext.errors import DatabaseError, TuningError
from tvm_ext.executable import Executable
from tvm_ext.frontend import load_model
from tvm_ext.fusion_database import FusionDatabase
from tvm_ext.fusion_profile import CostProfile, MeasuredProfile
from tvm_ext.layers import Layer, layers
from tvm_ext.lower import Progress
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes.fusion.decisions import Profile
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.plan import Plan
from tvm_ext.plan_check import check_plan
from tvm_ext.target import CpuTarget, resolve
from tvm_ext.transfer.bank import Bank
from tvm_ext.transfer.bank_offers import BankOffers

Model = Any
Target = str | Mapping[str, Any] | CpuTarget
TUNINGS = ("bank", "none")


def build(
    model: Model,
    target: Target = "native",
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    plan: Plan | str | os.PathLike[str] | None = None,
    fusion_database: str | os.PathLike[str] | None = None,
    tuning: str = "bank",
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
    """
    _check_tuning(tuning)
    cpu = resolve(target)
    mod, found, names = _prepare(model, input_shapes, _profile(cpu, fusion_database), progress)
    chosen = _plan(plan, found, cpu, tuning, progress)
    return assemble(mod, found, chosen, cpu, names, progress)


def plan(
    model: Model,
    target: Target = "native",
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    fusion_database: str | os.PathLike[str] | None = None,
    tuning: str = "bank",
) -> Plan:
    """The decisions that `build` would make, without making code. Parameters as for `build`."""
    _check_tuning(tuning)
    cpu = resolve(target)
    profile = _profile(cpu, fusion_database)
    _, found, _ = _prepare(model, input_shapes, profile, lambda stage: None)
    return _chosen(found, cpu, tuning)


def _profile(cpu: CpuTarget, database: str | os.PathLike[str] | None) -> Profile:
    """What answers fusion's open questions."""
    if database is None:
        return CostProfile(cpu)
    if not cpu.is_host:
        raise DatabaseError(f"fusion can't be measured for {cpu.name}, which isn't this machine")
    return MeasuredProfile(cpu, FusionDatabase(database))


def _prepare(
    model: Model,
    input_shapes: Mapping[str, Sequence[int]] | None,
    profile: Profile,
    progress: Progress,
) -> tuple[tvm.IRModule, list[Layer], list[str]]:
    """Load the model and cut it into layers; also its outputs' names."""
    progress("load")
    mod = load_model(model, input_shapes=input_shapes)
    names = [str(n) for n in mod["main"].attrs["tvm_ext.output_names"]]
    progress("graph passes")
    mod = graph_pipeline(UniversalFusion(profile))(mod)
    return mod, layers(mod), names


def _plan(
    given: Plan | str | os.PathLike[str] | None,
    found: list[Layer],
    cpu: CpuTarget,
    tuning: str,
    progress: Progress,
) -> Plan:
    progress("plan")
    if given is None:
        return _chosen(found, cpu, tuning)
    chosen = given if isinstance(given, Plan) else Plan.load(given)
    check_plan(chosen, found, cpu)
    return chosen


def _chosen(found: list[Layer], cpu: CpuTarget, tuning: str) -> Plan:
    bank = Bank.configured(cpu) if tuning == "bank" else None
    if not bank:
        return planner.choose(found, cpu)
    return planner.choose(found, cpu, BankOffers(bank, found, cpu))


def _check_tuning(tuning: str) -> None:
    if tuning not in TUNINGS:
        raise TuningError(f"tuning={tuning!r}; allowed: {', '.join(TUNINGS)}")
