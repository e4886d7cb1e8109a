"""model -> Plan: each layer's algorithm, parameters and layout, as the cost model favours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from tvm_ext.break_even import break_even
from tvm_ext.errors import PlanError
from tvm_ext.layers import Layer
from tvm_ext.layout_search import Option, search
from tvm_ext.passes import dataflow as df
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.base import Algorithm
from tvm_ext.schedules.layout import layout_block, layout_name
from tvm_ext.schedules.workload import ConcatWorkload, ViewWorkload
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.tensor_program import tensor_program

# Seconds that starting a kernel costs, whatever it computes.
_CALL_SECONDS = 1e-6
# The largest relative error that a measured schedule may show; it was checked when it was measured.
_TUNED_TOLERANCE = 1e-4
# Share of the FMA peak that TVM's own operators under the default schedule are taken to reach.
_GENERIC_EFFICIENCY = 0.05
# An algorithm and its layouts.
Choice = tuple[str, tuple[int, int]]
# Algorithms without a kernel file: the same bytes under another shape, and TVM's own operators.
VIEW, GENERIC = "view", "generic"
# TVM's own operators under a measured schedule; it takes any layer that has a tensor program.
TUNED = "tuned"


@dataclass(frozen=True)
class Offer:
    """A measured schedule for a layer.

    Attributes
    ----------
    params : dict
        Of the algorithm ``tuned``.
    seconds : float
        What it is expected to take.
    """

    params: dict[str, Any]
    seconds: float


# What takes less than so many seconds for a layer; or why there is nothing, empty if nothing fits.
Offers = Callable[[Layer, float], Offer | str]


def no_offers(layer: Layer, limit_s: float) -> Offer | str:
    """Nothing was measured."""
    return ""


@dataclass
class _Values:
    """The layouts in which each value of the model is at hand while planning proceeds."""

    blocks: dict[Any, set[int]] = field(default_factory=dict)

    def at_hand(self, var: Any, block: int) -> bool:
        blocks = self.blocks.get(var, {0})
        return block in blocks or any(interchangeable(df.shape_of(var), b, block) for b in blocks)

    def add(self, var: Any, block: int) -> None:
        self.blocks.setdefault(var, {0}).add(block)


def interchangeable(shape: tuple[int, ...], a: int, b: int) -> bool:
    """Whether two layouts of a tensor are the same bytes: single positions, full blocks."""
    if a == b:
        return True
    channels = shape[1] if len(shape) > 1 else 0
    return (
        len(shape) > 2 and prod(shape[2:]) == 1 and all(x == 0 or channels % x == 0 for x in (a, b))
    )


def choose(layers: list[Layer], target: CpuTarget, offers: Offers = no_offers) -> Plan:
    """Plan every layer in order.

    A layer sees the layouts that its producers chose, and whether a reader has no choice. Where
    `offers` has a measured schedule that beats the best estimate, conversions to the model's own
    layout and back included, it is taken.
    """
    values = _Values()
    plain = _read_plain(layers, target)
    forced = _search(layers, target) if any(_is_sparse(layer) for layer in layers) else {}
    together: dict[Any, list[tuple[Any, ...]]] = {}
    for layer in layers:
        for part in layer.inputs if isinstance(layer.workload, ConcatWorkload) else ():
            together.setdefault(part, []).append(layer.inputs)
    plans = []
    for layer in layers:
        plan = _choose_layer(layer, target, values, plain, forced.get(layer.name))
        plan = _with_offer(layer, plan, target, values, offers)
        plans.append(plan)
        _record(layer, plan, values)
        if layer_blocks(layer, plan)[1] == 0:
            # The other parts are best made as this one is.
            plain.update(*together.get(layer.output, ()))
    return Plan(target.name, plans)


def check(plan: Plan, layers: list[Layer], target: CpuTarget) -> None:
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


def layer_blocks(layer: Layer, entry: LayerPlan) -> tuple[int, int]:
    """Channel blocks of a planned layer's input and output."""
    return layout_block(entry.layout[0]), layout_block(entry.layout[1])


def _check_layer(layer: Layer, entry: LayerPlan, target: CpuTarget) -> None:
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
    allowed = _layouts(layer, algorithm, target)
    if layer_blocks(layer, entry) not in allowed:
        shown = [_names(layer, pair) for pair in allowed]
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


def _read_plain(layers: list[Layer], target: CpuTarget) -> set[Any]:
    """Values that some layer reads in the model's own order, whatever its algorithm."""
    read: set[Any] = set()
    for layer in layers:
        usable = [
            a for a in algorithms(layer.workload).values() if a.supports(layer.workload, target)
        ]
        pairs = [pair for a in usable for pair in _layouts(layer, a, target)]
        if not any(pair[0] for pair in pairs):
            read.update(layer.arguments)
    return read


def _is_sparse(layer: Layer) -> bool:
    return getattr(layer.workload, "sparsity", None) is not None


def _search(layers: list[Layer], target: CpuTarget) -> dict[str, Choice]:
    """For each layer the algorithm and the layouts of the plan that is cheapest as a whole.

    A choice is between the fastest dense algorithm and the fastest sparse one.
    """
    steps = []
    for layer in layers:
        fastest: dict[bool, tuple[float, str]] = {}
        for name, algorithm in algorithms(layer.workload).items():
            if algorithm.supports(layer.workload, target):
                params = algorithm.default(layer.workload, target)
                seconds = algorithm.cost(layer.workload, params, target) + _CALL_SECONDS
                dense = algorithm.storage == "dense"
                fastest[dense] = min(fastest.get(dense, (seconds, name)), (seconds, name))
        options = [
            Option(seconds, tuple(_needed(layer, pair)), pair[1], (name, pair))
            for seconds, name in fastest.values()
            for pair in _layouts(layer, algorithms(layer.workload)[name], target)
        ]
        steps.append((layer.output, options or [_in_model_order(layer)]))

    def conversion(var: Any, block: int, at_hand: frozenset[int]) -> float:
        if block in at_hand or any(interchangeable(df.shape_of(var), b, block) for b in at_hand):
            return 0.0
        return _conversion(df.shape_of(var), target)

    read = {x for layer in layers for x in layer.arguments}
    results = [layer.output for layer in layers if layer.output not in read]
    choices = search(steps, results, conversion)
    return {layer.name: choice for layer, choice in zip(layers, choices, strict=True) if choice}


def _in_model_order(layer: Layer) -> Option:
    """A layer without a kernel of ours, or a view."""
    return Option(0.0, tuple((var, 0) for var in layer.arguments), 0, None)


def _choose_layer(
    layer: Layer,
    target: CpuTarget,
    values: _Values,
    plain: set[Any],
    forced: Choice | None = None,
) -> LayerPlan:
    workload = layer.workload
    common: dict[str, Any] = {
        "name": layer.name, "ops": list(layer.ops),
        "gflop": workload.flops / 1e9, "megabytes": workload.bytes / 1e6,
        "fallback": layer.fallback,
    }  # fmt: skip
    if isinstance(workload, ViewWorkload):
        return LayerPlan(algorithm=VIEW, **common)
    rejected: dict[str, str] = {}
    options = []
    for name, algorithm in algorithms(workload).items():
        support = algorithm.supports(workload, target)
        if not support:
            rejected[name] = support.reason
            continue
        params = algorithm.default(workload, target)
        seconds = algorithm.cost(workload, params, target) + _CALL_SECONDS
        for pair in _layouts(layer, algorithm, target):
            total = seconds + _conversions(layer, pair, target, values)
            options.append((total, seconds, name, params, pair))
    if not options:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in rejected.items())
        common["fallback"] = layer.fallback or reasons or "no algorithm for this workload"
        seconds = _CALL_SECONDS + max(
            workload.bytes / target.memory_bandwidth,
            workload.flops / (target.fma_peak * _GENERIC_EFFICIENCY),
        )
        return LayerPlan(algorithm=GENERIC, estimate_us=seconds * 1e6, **common)
    # Ties go to the earlier algorithm and to the layout it names first.
    options.sort(key=lambda option: option[0])
    best = options[0]
    if forced is not None:
        best = next(option for option in options if (option[2], option[4]) == forced)
    for total, own, name, params, _ in options:
        if name == best[2] or name in rejected:
            continue
        rejected[name] = f"{total * 1e6:.0f} us against {best[0] * 1e6:.0f} us"
        if total < best[0]:
            rejected[name] += ", but more with the conversions of layers around it"
        algorithm = algorithms(workload)[name]
        if algorithm.storage != "dense":
            limit = break_even(algorithm, workload, params, target, best[0] - (total - own))
            rejected[name] += (
                f"; breaks even at density {limit:.2f}, has {workload.sparsity.density:.2f}"
            )
    if layer.output in plain and forced is None:
        # Not between algorithms, whose estimates are further off than a conversion takes.
        best = min(
            (option for option in options if option[2] == best[2]),
            key=lambda option: _with_reader(option[0], workload.out_shape, option[4][1], target),
        )
    algorithm = algorithms(workload)[best[2]]
    if algorithm.storage != "dense":
        skipped = 1 - workload.sparsity.density
        common["gflop"] -= 2 * workload.macs * skipped / 1e9
        common["megabytes"] -= workload.weight_bytes * skipped / 1e6
    return LayerPlan(
        algorithm=best[2], params=dict(best[3]), layout=_names(layer, best[4]),
        storage=algorithm.storage, estimate_us=best[1] * 1e6, rejected=rejected,
        tolerance=algorithm.tolerance(workload, best[3]), **common,
    )  # fmt: skip


def _with_offer(
    layer: Layer, plan: LayerPlan, target: CpuTarget, values: _Values, offers: Offers
) -> LayerPlan:
    """The layer under a measured schedule, if that beats its plan; else the reason joins it."""
    workload = layer.workload
    if isinstance(workload, (ViewWorkload, ConcatWorkload)):
        # Nothing to compute, or nothing once the parts are computed in place.
        return plan
    ours = plan.estimate_us * 1e-6 + _conversion_of(_reads(layer, plan), target, values)
    around = _conversion_of([(var, 0) for var in layer.arguments], target, values)
    block = layer_blocks(layer, plan)[1]
    if block and not interchangeable(df.shape_of(layer.output), block, 0):
        # The readers were to get it in blocks.
        around += _conversion(df.shape_of(layer.output), target)
    offer = offers(layer, ours - around)
    if isinstance(offer, str):
        return replace(plan, rejected={**plan.rejected, TUNED: offer}) if offer else plan
    against = f"{ours * 1e6:.0f} us against {(offer.seconds + around) * 1e6:.0f} us"
    return replace(
        plan, algorithm=TUNED, params=offer.params, layout=_names(layer, (0, 0)), storage="dense",
        source="bank", estimate_us=offer.seconds * 1e6, gflop=workload.flops / 1e9,
        megabytes=workload.bytes / 1e6, tolerance=_TUNED_TOLERANCE,
        rejected={**plan.rejected, plan.algorithm: against},
    )  # fmt: skip


def _with_reader(
    seconds: float, shape: tuple[int, ...], block: int, target: CpuTarget
) -> tuple[float, bool]:
    """Seconds with a conversion for a reader in the model's order; what needs one loses ties.

    A conversion of what a layer reads may serve others, too.
    """
    if interchangeable(shape, block, 0):
        return seconds, False
    return seconds + _conversion(shape, target), True


def _layouts(layer: Layer, algorithm: Algorithm[Any], target: CpuTarget) -> list[tuple[int, int]]:
    """The algorithm's layouts that the layer's tensors can have."""
    out_rank = len(layer.workload.out_shape)
    ranks = [len(df.shape_of(x)) for x in layer.inputs] or [out_rank]
    return [
        pair
        for pair in algorithm.layouts(layer.workload, target)
        if (pair[0] == 0 or min(ranks) > 2) and (pair[1] == 0 or out_rank > 2)
    ]


def _names(layer: Layer, pair: tuple[int, int]) -> list[str]:
    out_rank = len(layer.workload.out_shape)
    in_rank = len(df.shape_of(layer.inputs[0])) if layer.inputs else out_rank
    return [layout_name(in_rank, pair[0]), layout_name(out_rank, pair[1])]


def _needed(layer: Layer, pair: tuple[int, int]) -> list[tuple[Any, int]]:
    """The (value, block) pairs that a layer reads."""
    if not layer.inputs and not layer.operands:
        return [(var, 0) for var in layer.arguments]
    needed = [(var, pair[0]) for var in layer.inputs]
    for value, operand in zip(layer.operands, _operands(layer), strict=True):
        if not isinstance(value, np.ndarray):
            blocked = pair[1] if len(operand.shape) > 2 and operand.shape[1] != 1 else 0
            needed.append((value, blocked))
    return needed


def _operands(layer: Layer) -> Any:
    epilogue = getattr(layer.workload, "epilogue", None)
    return epilogue.operands if epilogue is not None else ()


def _conversions(layer: Layer, pair: tuple[int, int], target: CpuTarget, values: _Values) -> float:
    """Seconds to bring what the layer reads into its layouts."""
    return _conversion_of(_needed(layer, pair), target, values)


def _conversion_of(needed: Iterable[tuple[Any, int]], target: CpuTarget, values: _Values) -> float:
    """Seconds to make (value, block) pairs that aren't at hand."""
    return sum(
        _conversion(df.shape_of(var), target)
        for var, block in needed
        if not values.at_hand(var, block)
    )


def _conversion(shape: tuple[int, ...], target: CpuTarget) -> float:
    return 3 * _CALL_SECONDS + 8 * prod(shape) / target.memory_bandwidth


def _record(layer: Layer, plan: LayerPlan, values: _Values) -> None:
    for var, block in _reads(layer, plan):
        values.add(var, block)
    values.blocks.setdefault(layer.output, set()).add(layer_blocks(layer, plan)[1])


def _reads(layer: Layer, plan: LayerPlan) -> list[tuple[Any, int]]:
    """The (value, block) pairs that a planned layer reads."""
    if plan.algorithm in (GENERIC, TUNED) and layer.arguments:
        return [(var, 0) for var in layer.arguments]
    return _needed(layer, layer_blocks(layer, plan))
