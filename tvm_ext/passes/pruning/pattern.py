"""Pruning of kernels to patterns, and of whole kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tvm_ext.errors import OptionError
from tvm_ext.passes.pruning.options import check_count, check_density
from tvm_ext.passes.pruning.pattern_set import Pattern, as_patterns, common_patterns
from tvm_ext.passes.pruning.ranking import largest_filling
from tvm_ext.passes.pruning.scheme import Scheme, Shape

KERNELS = ((3, 3), (5, 5), (7, 7))
_MOST_ENTRIES = 49


@dataclass(frozen=True)
class PatternPrune(Scheme):
    """Keep of each kernel the weights under one of a few patterns; drop some kernels as a whole.

    Each kernel of a 3x3, 5x5 or 7x7 convolution takes the pattern that keeps most of its sum of
    squares. Then those kernels stay whose kept sums of squares are the largest of the layer.

    Neighbouring filters that share their patterns and kernels, `lanes` of them, fill a vector of a
    block-sparse kernel without a zero. The last of a layer's may be fewer.

    Parameters
    ----------
    entries : int
        Weights of a pattern.
    patterns : int
        Patterns of a set that is found: the most frequent of the natural ones. A kernel's natural
        pattern is its centre with the largest of its other weights.
    connectivity : float
        Share of the kernels that remain, in (0, 1]. Filters with one input (depthwise ones) keep
        theirs: they would be gone with it.
    lanes : int
        Neighbouring filters that share patterns and kernels; 1 leaves each kernel its own.
    pattern_set : sequence of array_like, optional
        Patterns to choose from in place of those found: arrays of ones and zeros of a kernel's
        shape, each with `entries` ones. They may be of several shapes.

    Raises
    ------
    OptionError
        An option has another value.

    Notes
    -----
    Patterns and connectivity are those of XGen (2022, section 2.1.1) and PatDNN (2020).
    """

    entries: int = 4
    patterns: int = 8
    connectivity: float = 1.0
    lanes: int = 1
    pattern_set: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        check_count("entries", self.entries, _MOST_ENTRIES)
        check_count("patterns", self.patterns)
        check_count("lanes", self.lanes)
        check_density("connectivity", self.connectivity)
        if self.pattern_set is not None:
            given = as_patterns(self.pattern_set, self.entries, KERNELS)
            object.__setattr__(self, "pattern_set", given)

    def refuses(self, shape: Shape) -> str:
        kernel = shape[2:]
        label = "x".join(map(str, kernel)) or "1x1"
        if kernel not in KERNELS:
            return f"a {label} kernel; patterns are for 3x3, 5x5 and 7x7"
        if self.entries > prod(kernel):
            return f"entries={self.entries}; a {label} kernel has {prod(kernel)}"
        if self.pattern_set is not None and not self._given(kernel):
            return f"pattern_set has none for a {label} kernel"
        return ""

    def mask(self, weights: np.ndarray) -> np.ndarray:
        self.check_shape(weights.shape)
        kernel = weights.shape[2:]
        energy = self._energy(weights)
        chosen = self._given(kernel)
        if self.pattern_set is None:
            chosen = common_patterns([energy], kernel, self.entries, self.patterns)
        table = np.array(chosen, dtype=bool).reshape(len(chosen), -1)
        kept = energy @ table.T.astype(energy.dtype)
        mask = table[kept.argmax(axis=-1)]
        if weights.shape[1] > 1:
            scores = kept.max(axis=-1)
            sizes = np.broadcast_to(self._sizes(len(weights))[:, None], scores.shape)
            connected = largest_filling(scores, sizes, self.connectivity * sizes.sum())
            mask = mask & connected[..., None]
        return np.repeat(mask, self.lanes, axis=0)[: len(weights)].reshape(weights.shape)

    def fitted(self, weights: Mapping[str, np.ndarray]) -> PatternPrune:
        if self.pattern_set is not None:
            return self
        found: list[Pattern] = []
        for kernel in KERNELS:
            energies = [
                self._energy(array)
                for array in weights.values()
                if array.shape[2:] == kernel and not self.refuses(array.shape)
            ]
            if energies:
                found += common_patterns(energies, kernel, self.entries, self.patterns)
        return replace(self, pattern_set=tuple(found)) if found else self

    def densities(self, shape: Shape) -> tuple[float, float]:
        whole = self.entries / prod(shape[2:])
        return (whole if shape[1] == 1 else 0.0), whole

    def at_density(self, density: float, shape: Shape) -> PatternPrune:
        check_density("density", density)
        self.check_shape(shape)
        least, most = self.densities(shape)
        # A share that was written down with few digits.
        if not least * 0.999 <= density <= most * 1.001:
            raise OptionError(
                f"density={density!r} for weights of shape {shape}: patterns with "
                f"entries={self.entries} keep {least:.3f} to {most:.3f}"
            )
        return replace(self, connectivity=min(1.0, density / most))

    def _given(self, kernel: Shape) -> list[Pattern]:
        """The patterns of the set that have this shape."""
        return [p for p in self.pattern_set or () if np.shape(p) == kernel]

    def _energy(self, weights: np.ndarray) -> np.ndarray:
        """Mean squares over the filters that share, (ceil(filters / lanes), inputs, taps)."""
        squares = weights.reshape(*weights.shape[:2], -1).astype("float64") ** 2
        if self.lanes == 1:
            return squares
        starts = np.arange(0, len(squares), self.lanes)
        return np.add.reduceat(squares, starts) / self._sizes(len(squares))[:, None, None]

    def _sizes(self, filters: int) -> np.ndarray:
        """How many filters share, each time."""
        starts = np.arange(0, filters, self.lanes)
        return np.minimum(self.lanes, filters - starts)
