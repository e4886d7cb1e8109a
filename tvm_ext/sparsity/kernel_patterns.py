"""The patterns of a convolution's kernels: which of its taps each of them keeps."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

# More patterns than that, each with code of its own, aren't patterns any more.
MOST_PATTERNS = 64
# A kernel's taps are the bits of one integer.
MOST_TAPS = 64

Pattern = tuple[int, ...]


@dataclass(frozen=True)
class KernelPatterns:
    """The patterns that occur, and how often.

    A pattern is the places of the taps that a kernel keeps, numbered row by row. Kernels that keep
    none have none.

    Attributes
    ----------
    distinct : int
        How many there are.
    taps : tuple of tuple of int
        Each pattern's taps, rising; empty if there are more than `MOST_PATTERNS`.
    kernels : tuple of int
        How many kernels keep each of them.
    """

    distinct: int
    taps: tuple[Pattern, ...]
    kernels: tuple[int, ...]

    @classmethod
    def of(cls, weights: np.ndarray) -> KernelPatterns:
        """The patterns of (filters, channels, *kernel) weights, ordered by their codes."""
        codes, counts = _frequencies(tap_codes(weights))
        if len(codes) > MOST_PATTERNS:
            return cls(len(codes), (), ())
        return cls(len(codes), tuple(taps_of(code) for code in codes), tuple(counts))

    def scaled(self, factor: float) -> KernelPatterns:
        """The same patterns, kept by `factor` times as many kernels."""
        kernels = tuple(round(count * factor) for count in self.kernels)
        return KernelPatterns(self.distinct, self.taps, kernels)


def tap_codes(weights: np.ndarray) -> np.ndarray:
    """For each kernel an integer, in which bit t says whether tap t isn't zero (NaN isn't).

    Parameters
    ----------
    weights : ndarray
        (filters, channels, *kernel), of at most `MOST_TAPS` taps.

    Returns
    -------
    ndarray of uint16, uint32 or uint64
        (filters, channels).
    """
    kernels = weights.shape[:2]
    nonzero = (weights != 0).reshape(*kernels, prod(weights.shape[2:]))
    bits = np.packbits(nonzero, axis=2, bitorder="little")
    size = next(n for n in (2, 4, 8) if n >= bits.shape[2])
    padded = np.zeros((*kernels, size), "uint8")
    padded[:, :, : bits.shape[2]] = bits
    return padded.view(f"<u{size}")[:, :, 0]


def taps_of(code: int) -> Pattern:
    """The taps whose bits are set in a code."""
    return tuple(t for t in range(MOST_TAPS) if code >> t & 1)


def code_of(taps: Pattern) -> int:
    """The code in which the bits of `taps` are set."""
    return sum(1 << t for t in taps)


def _frequencies(codes: np.ndarray) -> tuple[list[int], list[int]]:
    """The codes that occur, rising, and how often; without that of empty kernels."""
    if codes.dtype.itemsize == 2:
        # Ten times as fast as sorting them.
        counted = np.bincount(codes.reshape(-1), minlength=1)
        found = np.flatnonzero(counted)
        counts = counted[found]
    else:
        found, counts = np.unique(codes, return_counts=True)
    kept = found != 0
    return found[kept].tolist(), counts[kept].tolist()
