"""The ways to compute a layer: every algorithm that takes it, in each of its layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm_ext.layer_layouts import legal_layouts
from tvm_ext.layers import Layer
from tvm_ext.layout_conversions import CALL_SECONDS
from tvm_ext.schedules import algorithms
from tvm_ext.target import CpuTarget


@dataclass(frozen=True)
class Way:
    """An algorithm with its default parameters, in one of its layouts.

    Attributes
    ----------
    seconds : float
        Of its kernel, by the cost model, and of starting it.
    algorithm : str
    params : dict
    pair : (int, int)
        Channel blocks of the input and the output.
    """

    seconds: float
    algorithm: str
    params: dict[str, Any]
    pair: tuple[int, int]


@dataclass(frozen=True)
class Ways:
    """What can compute a layer, and why nothing else can.

    Attributes
    ----------
    usable : list of Way
        In the order in which ties are decided.
    refused : dict of str to str
        For the other algorithms, the reason.
    """

    usable: list[Way]
    refused: dict[str, str]


def ways(layer: Layer, target: CpuTarget) -> Ways:
    """The ways to compute a layer; none for a view, and for what only TVM's operators compute."""
    usable, refused = [], {}
    for name, algorithm in algorithms(layer.workload).items():
        support = algorithm.supports(layer.workload, target)
        if not support:
            refused[name] = support.reason
            continue
        params = algorithm.default(layer.workload, target)
        seconds = algorithm.cost(layer.workload, params, target) + CALL_SECONDS
        usable += [
            Way(seconds, name, params, pair) for pair in legal_layouts(layer, algorithm, target)
        ]
    return Ways(usable, refused)
