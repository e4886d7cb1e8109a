"""Filter-kernel-weight storage: of each nonzero kernel its pattern, channel and weights."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tvm_ext.errors import OptionError
from tvm_ext.sparsity.filter_kernel_reorder import filter_order
from tvm_ext.sparsity.kernel_patterns import (
    MOST_PATTERNS,
    MOST_TAPS,
    KernelPatterns,
    Pattern,
    code_of,
    tap_codes,
)

# Channels that one byte tells apart.
BLOCK_CHANNELS = 256


@dataclass(frozen=True)
class Fkw:
    """The weights of a convolution whose kernels keep one of a few patterns of taps, or nothing.

    Filters are in the order of `filter_order`. Inside a filter, the kernels of a pattern follow one
    another, those of each block of 256 channels as one run. What a kernel needs beside its weights
    is then one byte: its channel in the block. A zero of either sign isn't stored, and comes back
    as +0.0; all other values come back bit for bit.

    Attributes
    ----------
    shape : tuple of int
        Filters, channels of a filter, kernel.
    patterns : tuple of tuple of int
        Each pattern's taps, numbered row by row; a pattern's id is its place.
    weights : ndarray
        (nonzeros,), kernel by kernel.
    order : ndarray of uint8 or a larger unsigned integer
        (filters,): which filter is at each place.
    strides : ndarray of uint8 or a larger unsigned integer
        (filters, patterns x blocks + 1): how many kernels of a filter come before each run; at
        last, how many it has.
    indices : ndarray of uint8
        (kernels,): the channel of each kernel in its block, rising inside a run.

    Notes
    -----
    Niu et al., "PatDNN" (2020, section 5.3), and XGen (2022, section 2.3.1). The first kernel of a
    filter, which they store, is the sum of the last strides before it.
    """

    shape: tuple[int, ...]
    patterns: tuple[Pattern, ...]
    weights: np.ndarray
    order: np.ndarray
    strides: np.ndarray
    indices: np.ndarray

    @classmethod
    def from_dense(cls, weights: np.ndarray, groups: int = 1) -> Fkw:
        """The kernels that hold a value other than zero (NaN is one).

        Parameters
        ----------
        weights : ndarray
            (filters, channels, *kernel).
        groups : int
            Filters change their places only inside one of so many equal parts.

        Raises
        ------
        OptionError
            The kernels have too many taps, or too many patterns.
        """
        filters, channels, *kernel = weights.shape
        if prod(kernel) > MOST_TAPS:
            raise OptionError(f"kernels of {prod(kernel)} taps; FKW takes at most {MOST_TAPS}")
        found = KernelPatterns.of(weights)
        if found.distinct > MOST_PATTERNS:
            raise OptionError(
                f"kernels of {found.distinct} patterns; FKW takes at most {MOST_PATTERNS}"
            )
        filter_, channel, pattern = _kernels(weights, found)
        runs = len(found.taps) * blocks_of(channels)
        run = pattern * blocks_of(channels) + channel // BLOCK_CHANNELS
        counts = np.zeros((filters, runs), "int64")
        np.add.at(counts, (filter_, run), 1)
        order = _order_of_groups(counts, groups)
        place = np.argsort(order)[filter_]
        sequence = np.lexsort((channel, run, place))
        kept = weights[filter_[sequence], channel[sequence]].reshape(-1)
        order_dtype, strides_dtype = structure_dtypes(filters, channels)
        strides = np.zeros((filters, runs + 1), strides_dtype)
        strides[:, 1:] = counts[order].cumsum(axis=1)
        return cls(
            weights.shape,
            found.taps,
            kept[kept != 0],
            order.astype(order_dtype),
            strides,
            (channel[sequence] % BLOCK_CHANNELS).astype("uint8"),
        )

    def to_dense(self) -> np.ndarray:
        """The weights."""
        filters, channels, *kernel = self.shape
        masks = np.zeros((len(self.patterns), prod(kernel)), bool)
        for mask, taps in zip(masks, self.patterns, strict=True):
            mask[list(taps)] = True
        run = self._runs()
        pattern, block = divmod(run, blocks_of(channels))
        kernels = np.zeros((len(run), prod(kernel)), self.weights.dtype)
        kernels[masks[pattern]] = self.weights
        dense = np.zeros((filters, channels, prod(kernel)), self.weights.dtype)
        channel = block * BLOCK_CHANNELS + self.indices
        dense[np.repeat(self.order, self.strides[:, -1]), channel] = kernels
        return dense.reshape(self.shape)

    @property
    def pattern_ids(self) -> np.ndarray:
        """(kernels,): the pattern of each kernel, which the strides tell."""
        return self._runs() // blocks_of(self.shape[1])

    def _runs(self) -> np.ndarray:
        """(kernels,): in which run of its filter each kernel is."""
        lengths = np.diff(self.strides.astype("int64"), axis=1)
        return np.repeat(np.tile(np.arange(lengths.shape[1]), len(lengths)), lengths.reshape(-1))

    @property
    def nbytes(self) -> int:
        """Bytes of the weights and of the structure."""
        return self.weights.nbytes + self.structure_nbytes

    @property
    def structure_nbytes(self) -> int:
        """Bytes of everything but the weights; a tap of a pattern is one."""
        taps = sum(len(pattern) for pattern in self.patterns)
        return taps + self.order.nbytes + self.strides.nbytes + self.indices.nbytes


def blocks_of(channels: int) -> int:
    """Blocks that so many channels make."""
    return -(-channels // BLOCK_CHANNELS)


def structure_dtypes(filters: int, channels: int) -> tuple[np.dtype, np.dtype]:
    """Of the order and the strides: the smallest unsigned integers that hold what they count."""
    return np.min_scalar_type(max(filters - 1, 0)), np.min_scalar_type(channels)


def _kernels(weights: np.ndarray, found: KernelPatterns) -> tuple[np.ndarray, ...]:
    """Filter, channel and pattern of every kernel that isn't zero."""
    codes = tap_codes(weights)
    filter_, channel = np.nonzero(codes)
    wanted = np.array([code_of(taps) for taps in found.taps], codes.dtype)
    return filter_, channel, np.searchsorted(wanted, codes[filter_, channel])


def _order_of_groups(counts: np.ndarray, groups: int) -> np.ndarray:
    """`filter_order` of each group's filters."""
    size = len(counts) // groups
    return np.concatenate(
        [g * size + filter_order(counts[g * size : (g + 1) * size]) for g in range(groups)]
    )
