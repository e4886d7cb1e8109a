"""Sets of kernel patterns: reading those that are given, and finding one from the weights."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from tvm_ext.errors import OptionError

# A kernel's shape filled with booleans.
Pattern = tuple[tuple[bool, ...], ...]


def as_patterns(
    given: Sequence[Any], entries: int, kernels: Collection[tuple[int, int]]
) -> tuple[Pattern, ...]:
    """The patterns of a set, checked.

    Parameters
    ----------
    given : sequence of array_like
        Ones and zeros, or booleans.
    entries : int
        Ones of each.
    kernels : collection of (int, int)
        Shapes that they may have.

    Raises
    ------
    OptionError
        The set is empty, or a pattern has another shape, other values or another number of ones.
    """
    if not len(given):
        raise OptionError("pattern_set is empty")
    return tuple(_as_pattern(i, p, entries, kernels) for i, p in enumerate(given))


def _as_pattern(
    index: int, given: Any, entries: int, kernels: Collection[tuple[int, int]]
) -> Pattern:
    option = f"pattern_set[{index}]"
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise OptionError(f"{option}={given!r} is not a rectangular array") from error
    if array.shape not in kernels:
        allowed = ", ".join(f"{h}x{w}" for h, w in kernels)
        raise OptionError(f"{option} has shape {array.shape}; allowed: {allowed}")
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise OptionError(f"{option}={array.tolist()} has to be of ones and zeros")
    if np.count_nonzero(array) != entries:
        raise OptionError(f"{option} has {np.count_nonzero(array)} entries; entries={entries}")
    return _pattern(array)


def common_patterns(
    energies: Sequence[np.ndarray], kernel: tuple[int, int], entries: int, count: int
) -> list[Pattern]:
    """The natural patterns that occur most often; of equally frequent ones, that which keeps more.

    Parameters
    ----------
    energies : sequence of ndarray
        (..., taps): the squared weights of kernels, an array a layer. Kernels of zeros alone, as
        connectivity pruning leaves them, have no natural pattern, unless all are.
    kernel : (int, int)
        Height and width, whose product are the taps.
    entries : int
        Taps of a pattern, its centre among them.
    count : int
        Patterns wanted; fewer if fewer occur.
    """
    taps = kernel[0] * kernel[1]
    energy = np.concatenate([e.reshape(-1, taps) for e in energies])
    kept = energy.any(axis=1)
    energy = energy[kept] if kept.any() else energy
    ranked = energy.copy()
    ranked[:, taps // 2] = np.inf
    chosen = np.argsort(-ranked, axis=1, kind="stable")[:, :entries]
    natural = np.zeros(energy.shape, bool)
    np.put_along_axis(natural, chosen, True, axis=1)
    # A pattern's bits as one number; 49 taps fit into 64 bits.
    codes = natural @ (1 << np.arange(taps, dtype=np.int64))
    found, first, inverse, number = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    strength = np.bincount(inverse, (energy * natural).sum(axis=1), len(found))
    best = np.lexsort((-strength, -number))[:count]
    return [_pattern(natural[i].reshape(kernel)) for i in first[best]]


def _pattern(array: np.ndarray) -> Pattern:
    return tuple(tuple(bool(x) for x in row) for row in array)
