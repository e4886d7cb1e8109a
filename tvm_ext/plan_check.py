"""Whether a plan fits a model."""

from __future__ import annotations

import os

from tvm_ext.errors import PlanError
from tvm_ext.layer_layouts import (
    GENERIC,
    OFFLOAD,
    TUNED,
    VIEW,
    layer_blocks,
    legal_layouts,
    pair_names,
)
from tvm_ext.layers import Layer
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.workload import ViewWorkload
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.tensor_program import tensor_program


def given_plan(given: Plan | str | os.PathLike[str]) -> Plan:
    """A user's plan, read if it is a file.

    Raises
    ------
    PlanError
        It can't be read.
    """
    return given if isinstance(given, Plan) else Plan.load(given)


def check_plan(plan: Plan, layers: list[Layer], target: CpuTarget) -> None:
    """Refuse a plan that doesn't fit the model.

    Raises
    ------
    PlanError
        Naming the first layer, algorithm or parameter that is wrong, and what is allowed.
    """
    names = [layer.name for layer in layers]
    planned = [layer.name for layer in plan]
    if unknown := [n for n in planned if n not in names]:
        raise PlanError(f"layer {unknown[0]!r} isn't in the model; it has {names}")
    if missing := [n for n in names if n not in planned]:
        raise PlanError(f"the plan has no entry for layer {missing[0]!r}")
    if planned != names:
        raise PlanError("the plan's layers are not in the model's order")
    for layer, entry in zip(layers, plan, strict=True):
        _check_layer(layer, entry, target)


def _check_layer(layer: Layer, entry: LayerPlan, target: CpuTarget) -> None:
    if (entry.algorithm == OFFLOAD) != (layer.offloaded is not None):
        allowed = OFFLOAD if layer.offloaded is not None else [*algorithms(layer.workload), GENERIC]
        raise PlanError(f"layer {entry.name}: algorithm {entry.algorithm!r}; allowed: {allowed}")
    if entry.algorithm == OFFLOAD:
        return
    if entry.algorithm == TUNED:
        _check_tuned(layer, entry, target)
        return
    candidates = algorithms(layer.workload)
    if entry.algorithm == GENERIC or (
        entry.algorithm == VIEW and isinstance(layer.workload, ViewWorkload)
    ):
        return
    if entry.algorithm not in candidates:
        allowed = [*candidates, GENERIC]
        raise PlanError(f"layer {entry.name}: algorithm {entry.algorithm!r}; allowed: {allowed}")
    algorithm = candidates[entry.algorithm]
    support = algorithm.supports(layer.workload, target)
    if not support:
        raise PlanError(f"layer {entry.name}: {entry.algorithm} doesn't apply: {support.reason}")
    if wrong := algorithm.check(layer.workload, entry.params, target):
        raise PlanError(f"layer {entry.name}: {wrong}")
    allowed = legal_layouts(layer, algorithm, target)
    if layer_blocks(layer, entry) not in allowed:
        shown = [pair_names(layer, pair) for pair in allowed]
        raise PlanError(f"layer {entry.name}: layout {entry.layout}; allowed: {shown}")


def _check_tuned(layer: Layer, entry: LayerPlan, target: CpuTarget) -> None:
    program = tensor_program(layer)
    if isinstance(program, str):
        raise PlanError(f"layer {entry.name}: {TUNED} doesn't apply: {program}")
    algorithm = algorithms(program.workload)[TUNED]
    if wrong := algorithm.check(program.workload, entry.params, target):
        raise PlanError(f"layer {entry.name}: {wrong}")
    if layer_blocks(layer, entry) != (0, 0):
        raise PlanError(
            f"layer {entry.name}: layout {entry.layout}; {TUNED} knows the model's own alone"
        )
