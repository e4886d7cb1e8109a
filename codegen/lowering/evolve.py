"""A better tiling of one nest, by evolution: what is alike to the fastest ones is timed next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering.choose import (
    Choice,
    assign,
    instruction_count,
    nest_cycles,
    shortlist,
)
from tvm_ext.codegen.lowering.cost import Candidates, estimate
from tvm_ext.codegen.lowering.footprint import Residency, footprint
from tvm_ext.codegen.lowering.nest import Nest, Tiling
from tvm_ext.codegen.lowering.recipe import Recipe
from tvm_ext.codegen.lowering.sram import Gaps, pack
from tvm_ext.errors import OptionError

_SIZES = ("rows", "columns", "channels", "depth")
_SLOTS = ("input_slots", "weight_slots", "output_slots")
_MOST_SLOTS = 3
_PARENTS = 8
_CHILDREN = 96
"""Proposals of a round, of which few are timed."""


@dataclass(frozen=True)
class SearchOptions:
    """How long tilings are searched; the same options and seed give the same plan.

    Attributes
    ----------
    trials : int
        The most tilings of a nest that are timed.
    instructions : int
        The most compute instructions of a nest that are timed, all its tilings together.
    round_size : int
        Tilings that are timed before the next are proposed.
    patience : int
        Rounds without a faster one after which a nest's search ends.
    plans : int
        The most plans of the whole network that are timed.
    seed : int

    Raises
    ------
    OptionError
        At construction: a value isn't allowed.
    """

    trials: int = 64
    instructions: int = 10_000
    round_size: int = 8
    patience: int = 3
    plans: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        for option in fields(self):
            value, low = getattr(self, option.name), 0 if option.name == "seed" else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise OptionError(f"{option.name}={value!r}; allowed: a whole number from {low} on")


@dataclass(frozen=True)
class _Timed:
    choice: Choice
    estimate: int

    @property
    def error(self) -> float:
        """How far its estimate was off; those of tilings that are alike are, too."""
        return float(self.choice.cycles / self.estimate)


class TilingSearch:
    """The tilings of one nest that were timed, and the ones to be timed next.

    Parameters
    ----------
    accelerator, nest, recipe, residency, gaps, sram
        As of `choose`.
    options : SearchOptions
    """

    def __init__(
        self, accelerator: Accelerator, nest: Nest, recipe: Recipe, residency: Residency,
        gaps: Gaps, sram: Mapping[str, int], options: SearchOptions,
    ) -> None:  # fmt: skip
        self._accelerator, self._nest, self._recipe = accelerator, nest, recipe
        self._residency, self._gaps, self._sram = residency, gaps, sram
        self._options, self._rng = options, np.random.default_rng(options.seed)
        self._trials, self._instructions = options.trials, options.instructions
        self._seen: set[Tiling] = set()
        self._timed: list[_Timed] = []

    def best(self, start: Choice) -> Choice:
        """The fastest tiling that was found, `start` or a faster one."""
        self._seen.add(start.tiling)
        (known,) = self._estimates([start.tiling])
        self._timed.append(_Timed(start, known))
        best, idle = start, 0
        # First, the others of which `start` was chosen.
        found = shortlist(
            self._accelerator, self._nest, self._residency, sum(e - b for b, e in self._gaps)
        )
        proposed = [found.tiling(place) for place in range(min(len(found), _CHILDREN))]
        errors = [1.0] * len(proposed)
        while idle < self._options.patience and self._time(proposed, errors):
            self._timed.sort(key=lambda each: each.choice.cycles)
            idle = 0 if self._timed[0].choice.cycles < best.cycles else idle + 1
            best = self._timed[0].choice if idle == 0 else best
            proposed, errors = self._children()
        return best

    def _time(self, proposed: Sequence[Tiling], errors: Sequence[float]) -> bool:
        """Time the most promising; whether any was left and could be afforded."""
        new = {t: e for t, e in zip(proposed, errors, strict=True) if t not in self._seen}
        if not new:
            return False
        estimates = self._estimates(list(new))
        expected = np.array(estimates) * np.array(list(new.values()))
        tilings, timed = list(new), 0
        for place in np.argsort(expected, kind="stable").tolist():
            tiling = tilings[place]
            sizes = footprint(self._nest, tiling, self._residency)
            if (addresses := pack(sizes.sizes, self._gaps)) is None:
                continue
            count = instruction_count(self._nest, tiling)
            if not self._trials or timed == self._options.round_size:
                break
            if count > self._instructions:
                continue
            buffers = assign(sizes, addresses)
            cycles = nest_cycles(
                self._accelerator, self._nest, self._recipe, self._residency, tiling, buffers,
                self._sram,
            )  # fmt: skip
            self._trials, self._instructions = self._trials - 1, self._instructions - count
            self._seen.add(tiling)
            self._timed.append(_Timed(Choice(tiling, buffers, cycles), estimates[place]))
            timed += 1
        return timed > 0

    def _estimates(self, tilings: Sequence[Tiling]) -> list[int]:
        columns = (np.array([getattr(t, f.name) for t in tilings]) for f in fields(Tiling))
        cycles, _ = estimate(
            self._accelerator, self._nest, self._residency, Candidates(*columns),
            overlap=self._accelerator.double_buffering,
        )  # fmt: skip
        return list(cycles.tolist())

    def _children(self) -> tuple[list[Tiling], list[float]]:
        """Tilings with sizes of two parents or changed ones, and how far estimates may be off."""
        parents = self._timed[:_PARENTS]
        children, errors = [], []
        for _ in range(_CHILDREN):
            one, other = (parents[i] for i in self._rng.integers(len(parents), size=2))
            mixed = {
                f.name: getattr((one if self._rng.random() < 0.5 else other).choice.tiling, f.name)
                for f in fields(Tiling)
            }
            child = self._changed(Tiling(**mixed))
            children.append(self._trimmed(child))
            errors.append(one.error)
        return children, errors

    def _changed(self, tiling: Tiling) -> Tiling:
        """One size, order or number of buffers is another."""
        nest = self._nest
        names = [*_SIZES, *_SLOTS, "weights_outer"]
        if nest.fold:
            names = [name for name in names if name not in ("columns", "depth")]
        name = names[self._rng.integers(len(names))]
        if name == "weights_outer":
            return replace(tiling, weights_outer=not tiling.weights_outer)
        if name in _SLOTS:
            return replace(tiling, **{name: int(self._rng.integers(1, _MOST_SLOTS + 1))})
        total, size = self._totals()[name], getattr(tiling, name)
        parts = -(-total // int(self._rng.integers(1, total + 1)))
        sizes = (size - 1, size + 1, size * 2, size // 2, parts)
        return replace(tiling, **{name: sizes[self._rng.integers(len(sizes))]})

    def _trimmed(self, tiling: Tiling) -> Tiling:
        """Sizes within the layer's, and no more buffers than tiles."""
        sizes = {
            name: min(max(getattr(tiling, name), 1), total)
            for name, total in self._totals().items()
        }
        parts = {name: -(-total // sizes[name]) for name, total in self._totals().items()}
        space, blobs = parts["rows"] * parts["columns"], parts["channels"] * parts["depth"]
        inputs = space * parts["depth" if self._nest.reduction else "channels"]
        return Tiling(
            **sizes,
            weights_outer=tiling.weights_outer and space > 1 and parts["channels"] > 1,
            input_slots=min(tiling.input_slots, inputs),
            weight_slots=min(tiling.weight_slots, blobs),
            output_slots=min(tiling.output_slots, space * parts["channels"]),
        )

    def _totals(self) -> dict[str, int]:
        height, width, filters = self._nest.output.shape
        return dict(zip(_SIZES, (height, width, filters, self._nest.depth), strict=True))
