"""model -> Plan: each layer's algorithm, parameters and layout, as the cost model favours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tvm_ext.break_even import break_even
from tvm_ext.joint_layouts import Choice, joint_choices
from tvm_ext.layer_layouts import (
    GENERIC,
    OFFLOAD,
    TUNED,
    VIEW,
    layer_blocks,
    needed,
    pair_names,
    reads,
    reads_as,
)
from tvm_ext.layer_ways import Ways, ways
from tvm_ext.layers import Layer
from tvm_ext.layout_conversions import CALL_SECONDS, Values, conversion_seconds, copy_seconds
from tvm_ext.passes import dataflow as df
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.read_through import unread_views
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.workload import ConcatWorkload, ViewWorkload
from tvm_ext.target import CpuTarget

# The largest relative error that a measured schedule may show; it was checked when it was measured.
_TUNED_TOLERANCE = 1e-4
# Share of the FMA peak that TVM's own operators under the default schedule are taken to reach.
_GENERIC_EFFICIENCY = 0.05


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


def choose(
    layers: list[Layer], target: CpuTarget, offers: Offers = no_offers, is_part: bool = False
) -> Plan:
    """Plan every layer in order.

    All layers are chosen together. Where `offers` has a measured schedule that beats a layer's
    estimate, conversions to the model's own layout and back included, it is taken; what reads its
    result is then chosen anew, layer by layer: each sees the layouts that its producers chose, and
    whether a reader has no choice.

    The layers of a part of a model are all chosen one by one, with inputs in any layout: what is
    around it isn't known.
    """
    values = Values(inputs_in_any=is_part)
    found = [ways(layer, target) for layer in layers]
    unread = unread_views(layers)
    plain = _read_plain(layers, found, unread)
    joint = {} if is_part else joint_choices(layers, found, target)
    # Results that are in another layout than the joint choice's.
    changed: set[Any] = set()
    together: dict[Any, list[tuple[Any, ...]]] = {}
    for layer in layers:
        for part in layer.inputs if isinstance(layer.workload, ConcatWorkload) else ():
            together.setdefault(part, []).append(layer.inputs)
    plans = []
    for layer, usable in zip(layers, found, strict=True):
        choice = joint.get(layer.name)
        # Whatever the layouts, these are the values that it reads.
        alone = any(var in changed for var, _ in needed(layer, (0, 0)))
        follows = None if alone else choice
        plan = _choose_layer(layer, usable, target, values, plain, follows)
        plan = _with_offer(layer, plan, target, values, offers)
        plans.append(plan)
        if choice is not None and layer_blocks(layer, plan)[1] != choice[1][1]:
            changed.add(layer.output)
        if layer.output in unread:
            # In whatever layouts the tensor behind it is.
            values.share(layer.output, layer.inputs[0])
            continue
        values.record(layer, plan)
        if layer_blocks(layer, plan)[1] == 0:
            # The other parts are best made as this one is.
            plain.update(*together.get(layer.output, ()))
    return Plan(target.name, plans, precision=target.precision)


def _read_plain(layers: list[Layer], found: list[Ways], unread: set[Any]) -> set[Any]:
    """Values that some layer reads in the model's own order, whatever its algorithm."""
    read: set[Any] = set()
    for layer, known in zip(layers, found, strict=True):
        if layer.output not in unread and not any(way.pair[0] for way in known.usable):
            read.update(layer.arguments)
    return read


def _choose_layer(
    layer: Layer,
    found: Ways,
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
    rejected = dict(found.refused)
    options = []
    for way in found.usable:
        total = way.seconds + conversion_seconds(needed(layer, way.pair), target, values)
        options.append((total, way.seconds, way.algorithm, way.params, way.pair))
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
    if block and not reads_as(df.shape_of(layer.output), 0, block):
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
    if reads_as(shape, block, 0):
        return seconds, False
    return seconds + copy_seconds(shape, target), True
