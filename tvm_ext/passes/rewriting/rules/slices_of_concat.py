"""A concatenation of which only parts are read."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import Part, concat, concat_axis
from tvm_ext.passes.rewriting.branch import Branch, Emit, Merger
from tvm_ext.passes.rewriting.cost import Cost, cost
from tvm_ext.passes.rewriting.rule import MergeRule, register_rule


@register_rule
class SlicesOfConcat(MergeRule):
    """The concatenation isn't made; a slice of several parts concatenates what it needs of them."""

    name = "slices_of_concat"
    formula = "all slices of concat(a, b, ...) -> concatenations of slices of a, b, ..."
    operator = "strided_slice"

    def key(self, branch: Branch) -> Hashable:
        source, part = branch.source, Part.of(branch.anchor)
        if df.op_name(source) != "relax.concat" or not isinstance(source.args[0], relax.Tuple):
            return None
        return None if part is None or part.axis != concat_axis(source) else part.axis

    def merge(self, branches: Sequence[Branch]) -> Merger | str:
        first = branches[0]
        if len(branches) < first.siblings:
            return "others read the concatenation"
        roots = tuple(branch.calls[0][0] for branch in branches)
        pieces = [_pieces(branch) for branch in branches]
        before = sum((cost({}, branch.anchor) for branch in branches), cost({}, first.source))
        after = sum(map(_cost, branches, pieces), Cost())
        if not after.less_than(before):
            return "it saves nothing"

        def build(new: Any, emit: Emit) -> list[Any]:
            axis = concat_axis(first.source)
            made = []
            for each in pieces:
                cuts = [part.cut(new.fields[number]) for number, part in each]
                bound = [emit(cut) if isinstance(cut, relax.Call) else cut for cut in cuts]
                made.append(concat(bound, axis))
            return made

        return Merger(first.source.args[0], roots, build, before, after)


def _pieces(branch: Branch) -> list[tuple[int, Part]]:
    """The concatenated values that a slice reads, by number, and which part of each."""
    cut = Part.of(branch.anchor)
    assert cut is not None
    values = branch.source.args[0].fields
    ends = accumulate((df.shape_of(value)[cut.axis] for value in values), initial=0)
    found = []
    for number, (begin, end) in enumerate(pairwise(ends)):
        low, high = max(begin, cut.begin), min(end, cut.end)
        if low < high:
            found.append((number, Part(cut.axis, low - begin, high - begin)))
    return found


def _cost(branch: Branch, pieces: Sequence[tuple[int, Part]]) -> Cost:
    """Of a slice made from its pieces: those that aren't whole values are cut, then all joined."""
    sliced = cost({}, branch.anchor)
    extents = [part.end - part.begin for _, part in pieces]
    total = Cost() if len(pieces) == 1 else sliced
    for (number, part), extent in zip(pieces, extents, strict=True):
        if extent < df.shape_of(branch.source.args[0].fields[number])[part.axis]:
            flops, moved = (n * extent // sum(extents) for n in (sliced.flops, sliced.bytes))
            total += Cost(flops, moved, 1)
    return total
