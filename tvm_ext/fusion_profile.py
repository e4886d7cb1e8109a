"""Is one kernel faster than several? Answers for fusion's open questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm

from tvm_ext import planner
from tvm_ext.fusion_database import FusionDatabase, Record
from tvm_ext.layers import layers
from tvm_ext.layout_conversions import conversions_between
from tvm_ext.measure_layers import measure_layers
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.capabilities import NORMALIZATIONS
from tvm_ext.passes.fusion.group_functions import alone, outline
from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.operators import Operator
from tvm_ext.plan import Plan
from tvm_ext.target import CpuTarget

Groups = Sequence[Sequence[Operator]]

# A smaller gain is within the cost model's error: pools of maps that fit L2 lost up to 5 % where it
# expected 1 %. Of what is larger, and of a producer's result, which is neither stored nor loaded,
# the model counts a part.
_LEAST_GAIN = 1.015
# A norm of rows in the kernel of the product beside it: where the model expected to lose up to 1 %,
# GPT-2 and MiniLM took as long as with the norms apart on one thread, and 1 % less on two.
_TIE = 1 / _LEAST_GAIN


class CostProfile:
    """Answers by the planner's cost model; a `decisions.Profile`.

    Parameters
    ----------
    target : CpuTarget
    """

    def __init__(self, target: CpuTarget) -> None:
        self.target = target
        self._known: dict[Any, bool] = {}

    def __call__(self, one: Sequence[Operator], parts: Groups) -> bool:
        """Whether the cost model finds the one kernel faster than those of the parts."""
        key = _key(one, parts)
        if key not in self._known:
            between = max(part[-1].nbytes for part in parts[:-1])
            gain = _required_gain(one, between > self.target.l2)
            (fused, own), (split, apart) = self._plan([one]), self._plan(parts)
            # TVM's own operators are estimated by their bytes alone.
            lost = _falls_back(fused) and not _falls_back(split)
            self._known[key] = not lost and own * gain <= apart
        return self._known[key]

    def _plan(self, groups: Groups) -> tuple[Plan, float]:
        """How some groups that follow from each other are computed, and the estimated seconds."""
        found = layers(grouped(groups))
        plan = planner.choose(found, self.target, is_part=True)
        seconds = sum(layer.estimate_us for layer in plan) * 1e-6
        return plan, seconds + conversions_between(found, plan, self.target)


class MeasuredProfile:
    """Answers by building and timing both ways; a `decisions.Profile`.

    Parameters
    ----------
    target : CpuTarget
        The machine that this runs on.
    database : FusionDatabase
        Where answers are found and kept.
    """

    def __init__(self, target: CpuTarget, database: FusionDatabase) -> None:
        self.target, self.database = target, database

    def __call__(self, one: Sequence[Operator], parts: Groups) -> bool:
        """Whether the one kernel is measured faster than those of the parts."""
        key = repr(_key(one, parts))
        record = self.database.find(key, self.target.name)
        if record is None:
            fused, split = measure_layers([grouped([one]), grouped(parts)], self.target)
            record = Record(key, self.target.name, fused * 1e6, split * 1e6)
            self.database.add(record)
        return record.fused_us <= record.split_us


def grouped(groups: Groups) -> tvm.IRModule:
    """A module of these groups alone, in the form that `UniversalFusion` gives."""
    members = sorted((op for group in groups for op in group), key=lambda op: op.index)
    mod = alone([(op.var, op.expr) for op in members])
    pairs = dict(zip(members, df.bindings(mod["main"]), strict=True))
    ordered = sorted(groups, key=lambda group: max(op.index for op in group))
    return outline(
        mod, [[pairs[op] for op in sorted(group, key=lambda m: m.index)] for group in ordered]
    )


def _falls_back(plan: Plan) -> bool:
    """Whether a layer has no kernel of ours."""
    return any(layer.fallback for layer in plan)


def _required_gain(one: Sequence[Operator], is_large: bool) -> float:
    """How many times faster one kernel must be estimated than its parts.

    Parameters
    ----------
    one : sequence of Operator
    is_large : bool
        Whether what the parts hand on doesn't fit the L2 cache.
    """
    names = [df.op_name(op.expr) for op in one]
    if names.count("relax.matmul") == 1 and not NORMALIZATIONS.isdisjoint(names):
        return _TIE
    has_producer = kernel_form([(op.var, op.expr) for op in one]).producer is not None
    return 1.0 if is_large or has_producer else _LEAST_GAIN


def _key(one: Sequence[Operator], parts: Groups) -> Any:
    """What an answer depends on: the operators, how they are connected and how they are cut."""
    place = {op: i for i, op in enumerate(one)}
    cuts = {op: number for number, part in enumerate(parts) for op in part}
    return tuple(
        (op.signature, tuple(place.get(p, -1) for p in op.producers), cuts[op]) for op in one
    )
