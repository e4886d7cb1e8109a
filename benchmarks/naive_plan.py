"""TVM's default for every kernel: the loops as they are defined, no schedule at all."""

from __future__ import annotations

from dataclasses import replace

from tvm_ext.grouped_model import GroupedModel
from tvm_ext.plan import Plan
from tvm_ext.schedules.tuned import Tuned
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.tune_task import tune_tasks
from tvm_ext.transfer.tuned_entry import tuned_entry

# What a multiply-add of a scalar sum waits for: an addition that depends on the last one.
_CYCLES = 4
_CLOCK_HZ = 3e9


def naive_plan(model: GroupedModel, plan: Plan, cpu: CpuTarget) -> Plan:
    """A plan in which every kernel that TVM has a program of runs without a schedule.

    Parameters
    ----------
    model : GroupedModel
    plan : Plan
        The planner's, whose entries stay for what costs nothing or has no program of TVM's.
    cpu : CpuTarget

    Returns
    -------
    Plan
        Its estimates count `_CYCLES` for each iteration of a kernel's loops.
    """
    seconds = {
        name: task.work * _CYCLES / _CLOCK_HZ
        for task in tune_tasks(model.layers, dict.fromkeys((e.name for e in plan), 1.0))
        for name in task.layers
    }
    params = Tuned().default(None, cpu)
    entries = [
        tuned_entry(entry, params, seconds[entry.name], "user")
        if entry.estimate_us > 0 and entry.name in seconds
        else entry
        for entry in plan
    ]
    return replace(plan, layers=entries)
