"""model -> Plan: each layer's algorithm, parameters and layout, as the cost model favours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tvm_ext.break_even import break_even
from tvm_ext.layer_layouts import (
    GENERIC,
    OFFLOAD,
    TUNED,
    VIEW,
    interchangeable,
    layer_blocks,
    legal_layouts,
    needed,
    pair_names,
    reads,
)
from tvm_ext.layers import Layer
from tvm_ext.layout_conversions import CALL_SECONDS, Values, conversion_seconds, copy_seconds
from tvm_ext.layout_search import Option, search
from tvm_ext.passes import dataflow as df
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.workload import ConcatWorkload, ViewWorkload
from tvm_ext.target import CpuTarget

# The largest relative error that a measured schedule may show; it was checked when it was measured.
_TUNED_TOLERANCE = 1e-4
# Share of the FMA peak that TVM's own operators under the default schedule are taken to reach.
_GENERIC_EFFICIENCY = 0.05
# An algorithm and its layouts.
Choice = tuple[str, tuple[int, int]]


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


def choose(layers: list[Layer], target: CpuTarget, offers: Offers = no_offers) -> Plan:
    """Plan every layer in order.

    A layer sees the layouts that its producers chose, and whether a reader has no choice. Where
    `offers` has a measured schedule that beats the best estimate, conversions to the model's own
    layout and back included, it is taken.
    """
    values = Values()
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
    return Plan(target.name, plans, precision=target.precision)


def _read_plain(layers: list[Layer], target: CpuTarget) -> set[Any]:
    """Values that some layer reads in the model's own order, whatever its algorithm."""
    read: set[Any] = set()
    for layer in layers:
        usable = [
            a for a in algorithms(layer.workload).values() if a.supports(layer.workload, target)
        ]
        pairs = [pair for a in usable for pair in legal_layouts(layer, a, target)]
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
                seconds = algorithm.cost(layer.workload, params, target) + CALL_SECONDS
                dense = algorithm.storage == "dense"
                fastest[dense] = min(fastest.get(dense, (seconds, name)), (seconds, name))
        options = [
            Option(seconds, tuple(needed(layer, pair)), pair[1], (name, pair))
            for seconds, name in fastest.values()
            for pair in legal_layouts(layer, algorithms(layer.workload)[name], target)
        ]
        steps.append((layer.output, options or [_in_model_order(layer)]))

    def conversion(var: Any, block: int, at_hand: frozenset[int]) -> float:
        if block in at_hand or any(interchangeable(df.shape_of(var), b, block) for b in at_hand):
            return 0.0
        return copy_seconds(df.shape_of(var), target)

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
    values: Values,
    plain: set[Any],
    forced: Choice | None = None,
) -> LayerPlan:
    workload = layer.workload
    common: dict[str, Any] = {
        "name": layer.name, "ops": list(layer.ops),
        "gflop": workload.flops / 1e9, "megabytes": workload.bytes / 1e6,
        "fallback": layer.fallback,
    }  # fmt: skip
    if layer.offloaded is not None:
        common["gflop"] = 2 * layer.offloaded.macs / 1e9
        return LayerPlan(algorithm=OFFLOAD, device="accelerator", **common)
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
        seconds = algorithm.cost(workload, params, target) + CALL_SECONDS
        for pair in legal_layouts(layer, algorithm, target):
            total = seconds + conversion_seconds(needed(layer, pair), target, values)
            options.append((total, seconds, name, params, pair))
    if not options:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in rejected.items())
        common["fallback"] = layer.fallback or reasons or "no algorithm for this workload"
        seconds = CALL_SECONDS + max(
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
        algorithm=best[2], params=dict(best[3]), layout=pair_names(layer, best[4]),
        storage=algorithm.storage, estimate_us=best[1] * 1e6, rejected=rejected,
        tolerance=algorithm.tolerance(workload, best[3]), **common,
    )  # fmt: skip


def _with_offer(
    layer: Layer, plan: LayerPlan, target: CpuTarget, values: Values, offers: Offers
) -> LayerPlan:
    """The layer under a measured schedule, if that beats its plan; else the reason joins it."""
    workload = layer.workload
    if layer.offloaded is not None or isinstance(workload, (ViewWorkload, ConcatWorkload)):
        # Nothing to compute here, or nothing once the parts are computed in place.
        return plan
    ours = plan.estimate_us * 1e-6 + conversion_seconds(reads(layer, plan), target, values)
    around = conversion_seconds([(var, 0) for var in layer.arguments], target, values)
    block = layer_blocks(layer, plan)[1]
    if block and not interchangeable(df.shape_of(layer.output), block, 0):
        # The readers were to get it in blocks.
        around += copy_seconds(df.shape_of(layer.output), target)
    offer = offers(layer, ours - around)
    if isinstance(offer, str):
        return replace(plan, rejected={**plan.rejected, TUNED: offer}) if offer else plan
    against = f"{ours * 1e6:.0f} us against {(offer.seconds + around) * 1e6:.0f} us"
    return replace(
        plan, algorithm=TUNED, params=offer.params, layout=pair_names(layer, (0, 0)),
        storage="dense", source="bank", estimate_us=offer.seconds * 1e6, gflop=workload.flops / 1e9,
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
    return seconds + copy_seconds(shape, target), True


def _record(layer: Layer, plan: LayerPlan, values: Values) -> None:
    for var, block in reads(layer, plan):
        values.add(var, block)
    values.blocks.setdefault(layer.output, set()).add(layer_blocks(layer, plan)[1])
