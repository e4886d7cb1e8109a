"""The extents that a printed compute DAG leaves out: of stages between, and of reductions.

The text has the shapes of placeholders alone; a workload's key adds those of the outputs. The
rest follows from them.

1. A stage between is as large as its readers' accesses say. That is what TE's bound inference
   makes of it too, whatever its declared shape: padding that nothing reads isn't computed.
2. An axis of a reduction that alone indexes a dimension of known size runs over all of it.
3. One that shares an index with a spatial axis, a pool's window, leaves room for no further
   output: of stride s there are s such extents, and one where s is 1.
4. Behind padding, nothing in the text says how far the padding goes at the end. Its extents are
   only taken with evidence: the number of operations, or values given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tvm_ext.transfer.ansor.dag_ast import Axis, Compute, DagText, Expression, walk
from tvm_ext.transfer.ansor.dag_bounds import Interval, accesses, bounds
from tvm_ext.transfer.ansor.dag_flops import dag_flops
from tvm_ext.transfer.ansor.dag_limits import Limit, fitting_extent, stage_limits
from tvm_ext.transfer.ansor.errors import DagError

Extents = dict[str, dict[str, int]]
"""By stage and axis; spatial axes first, then those of the reduction, in order."""

_MOST_TRIALS = 20_000


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Extents that an axis can have; `sure` when they hold without assumptions on padding."""

    values: tuple[int, ...]
    sure: bool


def infer_extents(
    dag: DagText,
    outputs: Sequence[Sequence[int]],
    flops: float | None = None,
    reduce_extents: Mapping[str, int] | None = None,
) -> Extents:
    """Extents of every axis of every computed stage.

    Parameters
    ----------
    dag : DagText
    outputs : sequence of shapes
        Of `dag.outputs`, in order.
    flops : float, optional
        Ansor's count of operations of the DAG (``ComputeDAG.flop_ct``), or None.
    reduce_extents : Mapping[str, int], optional
        Extents that are known, by axis, or by ``stage.axis`` where several stages name one so.

    Raises
    ------
    DagError
        A shape of another rank, or an extent that isn't determined: which axis, and what could be.
    """
    known: Extents = {}
    for stage, shape in zip(dag.outputs, outputs, strict=True):
        if len(shape) != len(stage.axes):
            raise DagError(f"{stage.name} has {len(stage.axes)} axes, its shape is {list(shape)}")
        known[stage.name] = dict(zip(stage.axes, shape, strict=True))
    search = _Search(dag, stage_limits(dag), dict(reduce_extents or {}), flops)
    return search.run(known)


class _Search:
    """All extents that the text allows, from the outputs to the inputs."""

    def __init__(
        self, dag: DagText, limits: Mapping[str, Sequence[Limit]],
        given: dict[str, int], flops: float | None,
    ) -> None:  # fmt: skip
        self._dag, self._limits, self._given, self._flops = dag, limits, given, flops
        self._trials = 0

    def run(self, known: Extents) -> Extents:
        stages = tuple(reversed(self._dag.computes))
        found = [
            extents
            for extents in self._all(stages, known)
            if self._flops is None or dag_flops(self._dag, extents) == round(self._flops)
        ]
        if not found:
            raise DagError(f"no extents of its reductions make {self._flops:.0f} operations")
        if len(found) > 1:
            raise DagError(self._ambiguous(found))
        return {stage.name: found[0][stage.name] for stage in self._dag.computes}

    def _ambiguous(self, found: list[Extents]) -> str:
        options: dict[str, set[int]] = {}
        for stage in self._dag.computes:
            for axis in stage.reduce_axes:
                values = {extents[stage.name][axis] for extents in found}
                if len(values) > 1:
                    options[f"{stage.name}.{axis}"] = values
        listed = "; ".join(f"{n}: {min(v)} to {max(v)}" for n, v in options.items())
        return f"its text doesn't determine an extent ({listed}); give flops or reduce_extents"

    def _all(self, stages: tuple[Compute, ...], known: Extents) -> Iterator[Extents]:
        if not stages:
            yield known
            return
        stage, rest = stages[0], stages[1:]
        for reduced in self._reductions(stage, known):
            self._trials += 1
            if self._trials > _MOST_TRIALS:
                raise DagError(f"{stage.name}: too many extents are possible; give reduce_extents")
            extents = {**known, stage.name: {**known[stage.name], **reduced}}
            yield from self._all(rest, self._with_producers(stage, extents))

    def _reductions(self, stage: Compute, known: Extents) -> Iterator[dict[str, int]]:
        choices = [self._candidates(stage, axis, known[stage.name]) for axis in stage.reduce_axes]
        for axis, choice in zip(stage.reduce_axes, choices, strict=True):
            if self._flops is None and not choice.sure:
                raise DagError(
                    f"{stage.name} reduces {axis} behind padding, whose end the text doesn't say; "
                    f"give flops or reduce_extents={{{axis!r}: ...}}"
                )
        yield from self._products(stage.reduce_axes, choices)

    def _products(
        self, axes: tuple[str, ...], choices: list[_Candidates]
    ) -> Iterator[dict[str, int]]:
        if not axes:
            yield {}
            return
        for value in choices[0].values:
            for others in self._products(axes[1:], choices[1:]):
                yield {axes[0]: value, **others}

    def _candidates(self, stage: Compute, axis: str, spatial: dict[str, int]) -> _Candidates:
        # The other axes of the reduction are taken as 1: a window has one of them a dimension.
        ranges = _ranges({**dict.fromkeys(stage.reduce_axes, 1), **spatial})
        most_sure, alone, window = math.inf, math.inf, _Candidates((), False)
        for access, narrowed in accesses(stage.body, ranges):
            for index, limit in zip(access.indices, self._limits[access.stage], strict=True):
                names = {e.name for e in walk(index) if isinstance(e, Axis)}
                most = fitting_extent(index, axis, narrowed, limit.size)
                if axis not in names or math.isinf(most):
                    continue
                if limit.exact:
                    most_sure = min(most_sure, most)
                if names == {axis} and limit.exact:
                    alone = min(alone, most)
                else:
                    least = fitting_extent(index, axis, narrowed, limit.least)
                    stride = _stride(index, names - {axis}, narrowed)
                    window = _better(window, _window(int(least), int(most), stride, limit.exact))
        given = self._given.get(f"{stage.name}.{axis}", self._given.get(axis))
        if given is not None:
            if not 1 <= given <= most_sure:
                raise DagError(
                    f"{axis} of {stage.name} is given as {given}; allowed: 1 to {most_sure}"
                )
            return _Candidates((given,), True)
        if math.isfinite(alone):
            return _Candidates((int(alone),), True)
        if not window.values:
            raise DagError(f"nothing says how far {axis} of {stage.name} runs; give reduce_extents")
        return window

    def _with_producers(self, stage: Compute, extents: Extents) -> Extents:
        """The extents with what the stage reads of the stages before it."""
        ranks = {s.name: s.axes for s in self._dag.computes}
        grown = {name: dict(axes) for name, axes in extents.items()}
        for access, narrowed in accesses(stage.body, _ranges(extents[stage.name])):
            if access.stage not in ranks:
                continue
            sizes = grown.setdefault(access.stage, {})
            for axis, index, limit in zip(
                ranks[access.stage], access.indices, self._limits[access.stage], strict=True
            ):
                high = bounds(index, narrowed).high
                # An index that can't be bounded, such as one read from a stage, reads all of it.
                size = limit.size if math.isinf(high) else high + 1
                if math.isinf(size):
                    raise DagError(f"nothing bounds {axis} of {access.stage}")
                sizes[axis] = max(sizes.get(axis, 1), int(size))
        return grown


def _ranges(extents: Mapping[str, int]) -> dict[str, Interval]:
    return {axis: Interval(0, extent - 1) for axis, extent in extents.items()}


def _stride(index: Expression, names: set[str], ranges: Mapping[str, Interval]) -> int:
    """How far the greatest index moves when a spatial axis has one more output."""
    high = bounds(index, ranges).high
    steps = [1.0]
    for name in names:
        old = ranges[name]
        wider = {**ranges, name: Interval(old.low, old.high + 1)}
        steps.append(bounds(index, wider).high - high)
    return int(max(step for step in steps if math.isfinite(step)))


def _window(least: int, most: int, stride: int, exact: bool) -> _Candidates:
    low = max(1, least - stride + 1)
    # Behind padding of unknown end it can be larger; more than twice as large no layer has it.
    high = most if exact else 2 * most + stride
    return _Candidates(tuple(range(low, high + 1)), exact)


def _better(old: _Candidates, new: _Candidates) -> _Candidates:
    if not old.values or (new.sure, -len(new.values)) > (old.sure, -len(old.values)):
        return new
    return old
