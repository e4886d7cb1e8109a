"""MetaSchedule's schedule space of a function: sketches, mutations and postprocessors for CPUs."""

from __future__ import annotations

import tvm
from tvm import tirx
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.mutator import Mutator
from tvm.s_tir.meta_schedule.postproc import Postproc
from tvm.s_tir.meta_schedule.schedule_rule import ScheduleRule
from tvm.target import Target

from tvm_ext.target import CpuTarget


def schedule_target(cpu: CpuTarget) -> Target:
    """The TVM target with the number of cores, which MetaSchedule asks for."""
    return Target({**cpu.tvm.export(), "num-cores": cpu.cores})


def tune_context(
    function: tirx.PrimFunc,
    cpu: CpuTarget,
    strategy: ms.SearchStrategy | None = None,
    seed: int = 1,
) -> ms.TuneContext:
    """A tuning context of a function, whose space is the plain one of LLVM targets.

    `TuneContext()` itself would import every tensor intrinsic of every target first, which takes
    half a minute and has nothing for float32; so its C++ constructor is called instead.

    Parameters
    ----------
    function : PrimFunc
        Unscheduled.
    cpu : CpuTarget
    strategy : SearchStrategy, optional
        What proposes candidates; not needed to generate or postprocess schedules.
    seed : int
        From 1 on; the same seed gives the same proposals.
    """
    space = ms.space_generator.PostOrderApply(
        sch_rules=ScheduleRule.create("llvm"),
        postprocs=Postproc.create("llvm"),
        mutator_probs=Mutator.create("llvm"),
    )
    make = tvm.get_global_func("s_tir.meta_schedule.TuneContext")
    mod = tvm.IRModule({"main": function})
    context = make(
        mod, schedule_target(cpu), space, strategy, "main", cpu.cores, seed, lambda *_: None
    )
    tvm.get_global_func("s_tir.meta_schedule.TuneContextInitialize")(context)
    return context
