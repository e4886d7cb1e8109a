"""MetaSchedule's schedule space of a function: sketches, mutations and postprocessors for CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import ScheduleError
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.mutator import Mutator
from tvm.s_tir.meta_schedule.postproc import Postproc
from tvm.s_tir.meta_schedule.schedule_rule import MultiLevelTiling, ScheduleRule
from tvm.target import Target

from tvm_ext.errors import TransferError
from tvm_ext.schedules.tuned import first_line
from tvm_ext.target import CpuTarget


def schedule_target(cpu: CpuTarget) -> Target:
    """The TVM target with the number of cores, which MetaSchedule asks for."""
    return Target({**cpu.tvm.export(), "num-cores": cpu.cores})


def tune_context(
    function: tirx.PrimFunc,
    cpu: CpuTarget,
    strategy: ms.SearchStrategy | None = None,
    seed: int = 1,
    *,
    joins_tiles: bool = True,
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
    joins_tiles : bool
        Whether what follows a tiled block may be computed tile by tile with it.
    """
    rules = list(ScheduleRule.create("llvm"))
    space = ms.space_generator.PostOrderApply(
        sch_rules=rules if joins_tiles else [_apart(rule) for rule in rules],
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


def search_space(
    function: tirx.PrimFunc, cpu: CpuTarget, strategy: ms.SearchStrategy, seed: int
) -> tuple[ms.TuneContext, Sequence[Any], str]:
    """A tuning context of a function and the schedules that its search starts from.

    Returns
    -------
    context : TuneContext
    sketches : sequence of Schedule
    note : str
        Why the space isn't the whole one; or empty.

    Raises
    ------
    TransferError
        MetaSchedule's rules fail on the function.

    Notes
    -----
    Where a block reads a tiled one both by itself and through a sum (a normalisation behind a
    product), MetaSchedule's rule still puts it at the tiles, where its sums aren't complete yet,
    and TensorIR refuses. Such a function is searched without that rule's choice.
    """
    failure = ""
    for joins_tiles in (True, False):
        context = tune_context(function, cpu, strategy, seed, joins_tiles=joins_tiles)
        try:
            sketches = context.generate_design_space()
        except ScheduleError as error:
            failure = first_line(error)
        else:
            note = "" if joins_tiles else f"tiles are not joined with what follows: {failure}"
            return context, sketches, note
    raise TransferError(f"no schedule space: {failure}")


def _apart(rule: ScheduleRule) -> ScheduleRule:
    """The tiling rule without the choice to put what follows at its tiles; others as they are."""
    if not isinstance(rule, MultiLevelTiling):
        return rule
    return MultiLevelTiling(rule.structure, max_innermost_factor=rule.max_innermost_factor)
