"""What merging products and merging convolutions of one value have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.branch import Branch, Emit, Merger, common_length, merge_calls
from tvm_ext.passes.rewriting.cost import Cost, cost, nbytes
from tvm_ext.passes.rewriting.rule import MergeRule


class SharedInput(MergeRule):
    """One call with all the weights, and slices of its result.

    The saving is that the value is read once. Against it: slices that aren't views are copied,
    elementwise operators that aren't the same in all branches are no longer fused, and a slice
    can't be computed inside the concatenation that reads it.
    """

    @abstractmethod
    def axis(self, call: relax.Call) -> int:
        """The dimension of the result along which the parts lie."""

    @abstractmethod
    def is_view(self, shape: tuple[int, ...], begin: int, end: int) -> bool:
        """Whether a part of a result of this shape is a view."""

    def is_read_in_place(self, readers: Sequence[Any]) -> bool:
        """Whether all that read a part can read it inside the whole."""
        return False

    @abstractmethod
    def join(self, shared: Any, calls: Sequence[relax.Call]) -> relax.Call:
        """One call of the operator with the weights of several."""

    def merge(self, branches: Sequence[Branch]) -> Merger | str:
        axis = self.axis(branches[0].anchor)
        count = common_length(branches, axis)
        roots = [branch.calls[count - 1] for branch in branches]
        shape = df.shape_of(roots[0][0])
        ends = list(accumulate(df.shape_of(var)[axis] for var, _ in roots))
        whole = (*shape[:axis], ends[-1], *shape[axis + 1 :])
        parts = list(pairwise([0, *ends]))
        moved = 0
        for branch, (var, _), (begin, end) in zip(branches, roots, parts, strict=True):
            in_place = self.is_view(whole, begin, end) or self.is_read_in_place(
                branch.readers[count - 1]
            )
            moved += 2 * nbytes(var) * ((not in_place) + branch.fused_after(count))
            for reader in branch.readers[count - 1]:
                if df.op_name(reader) == "relax.concat":
                    moved += 2 * nbytes(reader)
        before = sum((cost(b.inner(count), b.calls[count - 1][1]) for b in branches), Cost())
        shared = branches[0].anchor.args[0]
        after = before + Cost(0, moved - (len(branches) - 1) * nbytes(shared), -1)
        if not after.less_than(before):
            return f"its slices move {moved} bytes more"

        def build(new: Any, emit: Emit) -> list[Any]:
            call = self.join(new, [branch.anchor for branch in branches])
            made = merge_calls(branches, count, call, axis, emit)
            return [relax.op.strided_slice(made, [axis], [b], [e]) for b, e in parts]

        return Merger(shared, tuple(var for var, _ in roots), build, before, after)
