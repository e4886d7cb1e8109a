"""How large the stages of a compute DAG can be, as far as their inputs say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tvm_ext.transfer.ansor.dag_ast import Axis, Call, Compute, DagText, Expression, walk
from tvm_ext.transfer.ansor.dag_bounds import Interval, accesses, bounds, guards


@dataclass(frozen=True, slots=True)
class Limit:
    """The size of a dimension.

    Attributes
    ----------
    size : float
        Infinite when nothing is known. Of a padded dimension, whose end the text doesn't say, with
        as much padding at the end as at the start.
    least : float
        Of a padded dimension without padding at the end; else the same as `size`.
    exact : bool
        Whether the text says the size.
    """

    size: float
    least: float
    exact: bool


def stage_limits(dag: DagText) -> dict[str, tuple[Limit, ...]]:
    """Of every stage, the limits of its dimensions, from the placeholders' shapes on."""
    limits = {s.name: tuple([Limit(n, n, True) for n in s.shape]) for s in dag.placeholders}
    for stage in dag.computes:
        limits[stage.name] = tuple([_axis_limit(stage, axis, limits) for axis in stage.axes])
    return limits


def _axis_limit(stage: Compute, axis: str, limits: Mapping[str, tuple[Limit, ...]]) -> Limit:
    inside = [g for c in _conditions(stage.body) for g in guards(c) if g[0] == axis]
    ends = [value + 1 for _, below, value in inside if not below]
    if ends:
        start = max([value for _, below, value in inside if below], default=0)
        return Limit(min(ends) + start, min(ends), False)
    # The other axes at their first value: what matters is how far this one can go.
    ranges = dict.fromkeys((*stage.axes, *stage.reduce_axes), Interval(0, 0))
    found: list[Limit] = []
    for access, narrowed in accesses(stage.body, ranges):
        for index, limit in zip(access.indices, limits[access.stage], strict=True):
            names = {e.name for e in walk(index) if isinstance(e, Axis)}
            most = fitting_extent(index, axis, narrowed, limit.size) if axis in names else math.inf
            if math.isfinite(most):
                # An index shared with others leaves room for them, so it only bounds this axis.
                exact = limit.exact and names == {axis}
                found.append(Limit(most, most if exact else 1, exact))
    if not found:
        return Limit(math.inf, 1, False)
    if inside:
        # One side of a concatenation each: together they go as far as the last.
        return Limit(max(limit.size for limit in found), 1, False)
    return min(found, key=lambda limit: (limit.size, not limit.exact))


def _conditions(body: Expression) -> list[Expression]:
    """The conditions that guard a read."""
    calls = [e for e in walk(body) if isinstance(e, Call)]
    return [c.arguments[0] for c in calls if c.function in ("if_then_else", "select")]


def fitting_extent(
    index: Expression, axis: str, ranges: Mapping[str, Interval], size: float
) -> float:
    """The largest extent of the axis with which the index stays below the size.

    Infinite when the axis doesn't reach the size, for instance under ``floormod``, and when the
    index has no bounds, for instance read from a stage.
    """

    def reach(extent: int) -> float:
        return bounds(index, {**ranges, axis: Interval(0, extent - 1)}).high

    def fits(extent: int) -> bool:
        return reach(extent) < size

    if math.isinf(size) or math.isinf(reach(1)):
        return math.inf
    most = 1
    while fits(most * 2):
        most *= 2
        if most > 2**40:
            return math.inf
    low, high = most, most * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
