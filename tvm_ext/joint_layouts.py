"""The algorithms and layouts of all layers of a model, chosen together.

Chosen one by one, a layer would take the layout that suits itself, whatever its readers then have
to convert. A search over all of them weighs the conversions against what the layers take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax

from tvm_ext.layer_layouts import needed, reads_as
from tvm_ext.layer_ways import Way, Ways
from tvm_ext.layers import Layer
from tvm_ext.layout_conversions import copy_seconds
from tvm_ext.layout_search import Option, search
from tvm_ext.passes import dataflow as df
from tvm_ext.read_through import unread_views
from tvm_ext.schedules import algorithms
from tvm_ext.target import CpuTarget

# An algorithm and its layouts.
Choice = tuple[str, tuple[int, int]]
# Estimates of two algorithms are further off than most conversions take. One that is hardly slower
# than the fastest for its layer counts as fast; any other has to make up for so much more.
_EVEN, _DOUBT = 1.01, 1.2
# What still decides between those that count as fast, where no conversion does.
_TIE = 1e-3


def joint_choices(
    layers: Sequence[Layer], ways: Sequence[Ways], target: CpuTarget
) -> dict[str, Choice]:
    """For each layer that kernels of ours compute, its part of the cheapest plan.

    Parameters
    ----------
    layers : sequence of Layer
        Of a whole model, in order.
    ways : sequence of Ways
        Of each of them.
    target : CpuTarget
    """
    unread = unread_views(list(layers))
    steps = []
    for layer, found in zip(layers, ways, strict=True):
        options = [
            Option(seconds, tuple(needed(layer, way.pair)), way.pair[1], (way.algorithm, way.pair))
            for seconds, way in _weighed(layer, found.usable)
        ]
        if not options:
            # A layer without a kernel of ours, or a view.
            reads = () if layer.output in unread else tuple((x, 0) for x in layer.arguments)
            options = [Option(0.0, reads, 0, None)]
        steps.append((layer.output, options))

    def conversion(var: Any, block: int, at_hand: frozenset[int]) -> float:
        if not isinstance(var.ty, relax.TensorType):
            return 0.0  # a tuple, which only TVM's own operators make
        if any(reads_as(df.shape_of(var), stored, block) for stored in at_hand):
            return 0.0
        return copy_seconds(df.shape_of(var), target)

    read = {x for layer in layers for x in layer.arguments}
    results = [layer.output for layer in layers if layer.output not in read]
    choices = search(steps, results, conversion)
    return {layer.name: choice for layer, choice in zip(layers, choices, strict=True) if choice}


def _weighed(layer: Layer, usable: Sequence[Way]) -> list[tuple[float, Way]]:
    """The ways worth a search, with what they count for."""
    if getattr(layer.workload, "sparsity", None) is not None:
        # Between a dense algorithm and a sparse one, the estimates decide as they are.
        fastest: dict[bool, Way] = {}
        for way in usable:
            dense = algorithms(layer.workload)[way.algorithm].storage == "dense"
            if dense not in fastest or way.seconds < fastest[dense].seconds:
                fastest[dense] = way
        names = {way.algorithm for way in fastest.values()}
        return [(way.seconds, way) for way in usable if way.algorithm in names]
    best = min((way.seconds for way in usable), default=0.0)
    return [
        (best + _TIE * (way.seconds - best), way)
        if way.seconds <= _EVEN * best
        else (_DOUBT * way.seconds, way)
        for way in usable
    ]
