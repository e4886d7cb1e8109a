"""Sparse convolution kernels of one shape against the FMA peak and the best dense kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks import magnitude
from benchmarks.kernels import Kernel, conv_kernel, random_weights
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.peak import Probe
from tvm_ext.sparsity import summarize
from tvm_ext.target import CpuTarget

SCHEMES = {
    "sparse_spatial_pack": "block16", "block_sparse": "block16", "csr": "unstructured",
    "fkw": "pattern",
}  # fmt: skip
"""The algorithms, and how the weights are pruned for each."""

# These take fewer multiplications than the convolution has.
_WINOGRAD = ("winograd_2x2", "winograd_4x4")
# Dense kernels whose estimates are up to so many times the least are measured.
_LIKELY = 2.0
_TOLERANCE = 1e-5
# Runs of each kernel, and of the peak, between two changes.
_RUNS = 3


@dataclass(frozen=True)
class Point:
    """A sparse kernel at one density, each number a median over the rounds.

    Attributes
    ----------
    density : float
        Share of the weights that aren't zero.
    seconds : float
    of_peak : float
        FLOP/s, counting the nonzero weights alone, by the FMA peak.
    to_direct, to_dense : float
        Time by that of the best dense kernel, without and with Winograd.
    """

    density: float
    seconds: float
    of_peak: float
    to_direct: float
    to_dense: float


@dataclass(frozen=True)
class Measured:
    """The kernels of one shape.

    Attributes
    ----------
    direct, dense : tuple of (str, float, float)
        Algorithm, seconds and share of the peak of the best dense kernel without and with Winograd.
        The share counts the convolution's own operations.
    points : Mapping of str to list of Point
        By sparse algorithm, densities rising.
    refused : Mapping of str to str
        Sparse algorithms that don't take the shape, and why.
    """

    direct: tuple[str, float, float]
    dense: tuple[str, float, float]
    points: Mapping[str, list[Point]]
    refused: Mapping[str, str]


def measure(
    workload: ConvWorkload,
    densities: Sequence[float],
    target: CpuTarget,
    probe: Probe,
    rounds: int,
) -> Measured:
    """Time the registered sparse algorithms at each density, and dense ones, in turn.

    Parameters
    ----------
    workload : ConvWorkload
        Dense, two-dimensional.
    densities : Sequence[float]
        Rising; `pattern` has none beyond what its kernels keep, and takes that instead.
    target : CpuTarget
    probe : Probe
        The FMA peak's, run in turn with the kernels.
    rounds : int

    Raises
    ------
    RuntimeError
        A kernel's result is wrong.
    """
    sparse: dict[tuple[str, float], Kernel] = {}
    refused: dict[str, str] = {}
    for name, scheme in SCHEMES.items():
        if name not in algorithms():
            continue
        try:
            sparse.update(_sparse_kernels(name, scheme, workload, densities, target))
        except ValueError as error:
            refused[name] = str(error)
    dense = _dense_kernels(workload, target)
    times: dict[object, list[float]] = {key: [] for key in (*dense, *sparse)}
    peaks = []
    for _ in range(rounds):
        peaks.append(probe.rate(_RUNS))
        for key, kernel in (*dense.items(), *sparse.items()):
            times[key].append(float(kernel.seconds(_RUNS).min()))
    best = min(dense, key=lambda name: np.median(times[name]))
    direct = min(set(dense) - set(_WINOGRAD), key=lambda name: np.median(times[name]))

    def ratio(key: object, reference: str) -> float:
        return float(np.median(np.divide(times[key], times[reference])))

    def of_peak(key: object, density: float) -> float:
        flops = 2 * workload.macs * density
        return float(np.median(flops / np.multiply(times[key], peaks)))

    points: dict[str, list[Point]] = {}
    for name, density in sparse:
        key = name, density
        seconds, share = float(np.median(times[key])), of_peak(key, density)
        point = Point(density, seconds, share, ratio(key, direct), ratio(key, best))
        points.setdefault(name, []).append(point)
    found = [(n, float(np.median(times[n])), of_peak(n, 1.0)) for n in (direct, best)]
    return Measured(found[0], found[1], points, refused)


def break_even(densities: Sequence[float], ratios: Sequence[float]) -> tuple[float, str]:
    """The density from which on a kernel is slower, and where that isn't between two others.

    Parameters
    ----------
    densities, ratios : Sequence[float]
        Densities, rising, and the time at each by the dense kernel's.

    Returns
    -------
    tuple[float, str]
        Interpolated between the two densities around the first ratio above 1, and "". Where all
        ratios are below 1 the largest density and ">", where all are above it the least and "<".
    """
    slower = [i for i, ratio in enumerate(ratios) if ratio > 1]
    if not slower:
        return densities[-1], ">"
    at = slower[0]
    if at == 0:
        return densities[0], "<"
    share = (1 - ratios[at - 1]) / (ratios[at] - ratios[at - 1])
    return densities[at - 1] + share * (densities[at] - densities[at - 1]), ""


def _dense_kernels(workload: ConvWorkload, target: CpuTarget) -> dict[str, Kernel]:
    """Kernels of the dense algorithms that may be the fastest, with Winograd and without."""
    costs = {
        name: algorithm.cost(workload, algorithm.default(workload, target), target)
        for name, algorithm in algorithms(workload).items()
        if algorithm.storage == "dense" and algorithm.supports(workload, target)
    }
    limits = {
        True: _LIKELY * min(costs.values()),
        False: _LIKELY * min(cost for name, cost in costs.items() if name not in _WINOGRAD),
    }
    return {
        name: conv_kernel(name, workload, target)
        for name, cost in costs.items()
        if cost <= limits[name in _WINOGRAD]
    }


def _sparse_kernels(
    name: str, scheme: str, workload: ConvWorkload, densities: Sequence[float], target: CpuTarget
) -> dict[tuple[str, float], Kernel]:
    """Checked kernels by algorithm and true density."""
    kernels = {}
    most = magnitude.ENTRIES / 9 if scheme == "pattern" else 1.0
    for density in sorted({min(density, most) for density in densities}):
        weights = magnitude.prune(
            random_weights(workload, np.random.default_rng(0)), scheme, density
        )
        sparsity = summarize(weights)
        if sparsity is None:
            raise ValueError(f"density {density} counts as dense")
        kernel = conv_kernel(name, replace(workload, sparsity=sparsity), target, weights)
        if not kernel.error <= _TOLERANCE:
            raise RuntimeError(f"{name} at density {density}: the error is {kernel.error}")
        kernels[name, sparsity.density] = kernel
    return kernels
