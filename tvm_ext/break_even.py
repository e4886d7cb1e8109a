"""The density of weights from which on a sparse algorithm loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tvm_ext.schedules.base import Algorithm
from tvm_ext.target import CpuTarget

_STEPS = 12


def break_even(
    algorithm: Algorithm[Any],
    workload: Any,
    params: Mapping[str, Any],
    target: CpuTarget,
    seconds: float,
) -> float:
    """The largest density at which a sparse algorithm takes no longer than `seconds`.

    The zeros are taken to lie as they do in the workload, only more or fewer of them.

    Returns
    -------
    float
        From 0, if it is slower even without any weight, to 1.
    """
    own = workload.sparsity
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        density = (low + high) / 2
        counts = own.at_density(density)
        if algorithm.cost(replace(workload, sparsity=counts), params, target) <= seconds:
            low = density
        else:
            high = density
    return low
