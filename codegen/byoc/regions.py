"""Merges matches into regions that can run as one call each.

A region has to be convex: no value goes from it through the CPU, or another region, and back.
Matches join in the function's order, each with the regions of everything that it reads, as long as
the union stays convex and agrees on its tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tvm_ext.codegen.byoc.graph import Graph
from tvm_ext.codegen.byoc.match import Match
from tvm_ext.codegen.network_layers import TensorSpec
from tvm_ext.passes import dataflow as df


@dataclass(frozen=True)
class Region:
    """Matches that run together, in the function's order.

    Attributes
    ----------
    matches : tuple of Match
    inputs : tuple of Quantized
        What comes from outside, in order of first use.
    outputs : tuple of Quantized
        What others read.
    """

    matches: tuple[Match, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates, of the whole batch."""
        return sum(match.macs for match in self.matches)


def regions_of(graph: Graph, matches: dict[Any, Match]) -> list[Region]:
    """The regions of a function, in the order of their last matches.

    Groups without a product aren't worth the way to the accelerator and back: they are left out.
    """
    groups: list[set[Any]] = []
    for var, match in matches.items():
        union = {var}
        for group in [g for g in groups if any(x.var in g for x in match.inputs)]:
            candidate = union | group
            if _agree(candidate, matches) and is_convex(candidate, graph, matches):
                union = candidate
                groups.remove(group)
        groups.append(union)
    groups = [g for g in groups if any(matches[var].macs for var in g)]
    kept = {var: match for var, match in matches.items() if any(var in g for g in groups)}
    live = live_values(graph, kept)
    regions = [_region(g & live, graph, kept, live) for g in groups]
    return [region for region in regions if region.outputs]


def sources(var: Any, graph: Graph, matches: dict[Any, Match]) -> Iterable[Any]:
    """The values that one is computed from: a match's inputs, or what its operator reads."""
    if var in matches:
        return [x.var for x in matches[var].inputs]
    return list(df.free_vars(graph.bound(var))) if var in graph.order else []


def is_convex(group: set[Any], graph: Graph, matches: dict[Any, Match]) -> bool:
    """Whether no path leaves a group of values and comes back."""
    first = min(graph.order[var] for var in group)
    waiting = [x for var in group for x in sources(var, graph, matches) if x not in group]
    seen: set[Any] = set()
    while waiting:
        var = waiting.pop()
        if var in group:
            return False
        # What is computed before all of the group can't depend on it.
        if var in seen or graph.order.get(var, -1) < first:
            continue
        seen.add(var)
        waiting.extend(sources(var, graph, matches))
    return True


def live_values(graph: Graph, matches: dict[Any, Match]) -> set[Any]:
    """Every value that the function's result needs once matches read their inputs alone."""
    waiting, live = list(df.free_vars(df.result(graph.func))), set()
    while waiting:
        var = waiting.pop()
        if var not in live:
            live.add(var)
            waiting.extend(sources(var, graph, matches))
    return live


def _agree(group: set[Any], matches: dict[Any, Match]) -> bool:
    """Whether all matches see shared tensors alike, with one batch and one integer type."""
    tensors: dict[str, TensorSpec] = {}
    for var in group:
        for name, spec in matches[var].tensors.items():
            if tensors.setdefault(name, spec) != spec:
                return False
    batches = {spec.shape[0] for spec in tensors.values()}
    return len(batches) == 1 and len({matches[var].output.unsigned for var in group}) == 1


def _region(group: set[Any], graph: Graph, matches: dict[Any, Match], live: set[Any]) -> Region:
    ordered = sorted(group, key=graph.order.__getitem__)
    chosen = tuple(matches[var] for var in ordered)
    inputs = {x.var: x for match in chosen for x in match.inputs if x.var not in group}
    read = set(df.free_vars(df.result(graph.func)))
    for var in live - group:
        read.update(sources(var, graph, matches))
    outputs = tuple(matches[var].output for var in ordered if var in read)
    return Region(chosen, tuple(inputs.values()), outputs)
