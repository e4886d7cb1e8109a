"""How many zeros a layer needs to be faster by a given factor, by the cost model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from tvm_ext.anchors import ANCHORS
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.pruning.prunable import Prunable
from tvm_ext.passes.pruning.scheme import Scheme
from tvm_ext.schedules import algorithms
from tvm_ext.sparsity import summarize
from tvm_ext.target import CpuTarget

# The least density that is tried, and how far above the right one an answer may be.
_LEAST = 0.01
_PRECISION = 1.02


def density_for(layer: Prunable, scheme: Scheme, speedup: float, target: CpuTarget) -> float | str:
    """The largest density at which a layer is that much faster than its fastest dense kernel.

    Parameters
    ----------
    layer : Prunable
    scheme : Scheme
        What decides where the zeros are.
    speedup : float
        Dense time over pruned time, above 1.
    target : CpuTarget

    Returns
    -------
    float or str
        The density, or why there is none: no kernel takes the layer, or not even 0.01 is enough,
        or the least that the scheme can leave.
    """
    workload = _workload(layer)
    if isinstance(workload, str):
        return workload
    dense = _fastest(replace(workload, sparsity=None), target, sparse=False)
    if dense is None:
        return "no algorithm takes it"

    def gain(density: float) -> float:
        mask = scheme.at_density(density, layer.weights.shape).mask(layer.weights)
        sparsity = summarize(np.where(mask, layer.weights, 0))
        pruned = _fastest(replace(workload, sparsity=sparsity), target, sparse=True)
        return 1.0 if pruned is None else dense / min(dense, pruned)

    least, most = scheme.densities(layer.weights.shape)
    low = max(least, _LEAST)
    if (best := gain(low)) < speedup:
        return f"speedup={speedup} is out of reach: {best:.2f} at density {low:.3f}"
    return most if gain(most) >= speedup else _largest(lambda d: gain(d) >= speedup, low, most)


def _largest(fits: Callable[[float], bool], low: float, high: float) -> float:
    """The largest number that fits, between one that does and one that doesn't."""
    while high / low > _PRECISION:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _workload(layer: Prunable) -> Any:
    """What has to be computed, as its reader says; or why no kernel of ours takes it."""
    var, call = next(u for u in layer.uses if not isinstance(u[1].args[0], df.Constant))
    anchor = ANCHORS[df.op_name(call)](call, df.shape_of(var))
    return anchor if isinstance(anchor, str) else anchor.base


@lru_cache(maxsize=1024)
def _fastest(workload: Any, target: CpuTarget, sparse: bool) -> float | None:
    """Seconds of the fastest algorithm that takes it, of those with sparse or dense storage."""
    times = [
        algorithm.cost(workload, algorithm.default(workload, target), target)
        for algorithm in algorithms(workload).values()
        if (algorithm.storage != "dense") == sparse and algorithm.supports(workload, target)
    ]
    return min(times, default=None)
