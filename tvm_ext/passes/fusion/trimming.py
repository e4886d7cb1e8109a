"""Take from a group the moves that cost nothing outside it either."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.moves import follow
from tvm_ext.passes.fusion.operators import Operator
from tvm_ext.schedules.strided_view import StridedView


def trim(group: Sequence[Operator]) -> list[Operator]:
    """The group without moves at its edges that leave the elements where they are.

    Such a move is a view of its whole tensor: another name and shape, no kernel. Inside the group
    it would only keep others from sharing the view.
    """
    kept = list(group)
    while len(kept) > 1 and kept[-1].is_view and _stays(kept):
        kept.pop()
    for op in group:
        chain = _chain(op, kept)
        if chain and len(chain) < len(kept) and _leaves_in_place(chain):
            kept = [member for member in kept if member not in chain]
    return kept


def _stays(group: Sequence[Operator]) -> bool:
    return kernel_form([(op.var, op.expr) for op in group]).out.is_contiguous


def _chain(op: Operator, group: Sequence[Operator]) -> list[Operator]:
    """The moves from `op` on, if it moves what the group reads and each has one reader."""
    if op not in group or any(p in group for p in op.producers):
        return []
    chain = []
    while op in group and op.moves is not None:
        if len(op.consumers) != 1:
            return []
        chain.append(op)
        op = op.consumers[0]
    return chain


def _leaves_in_place(chain: Sequence[Operator]) -> bool:
    """Whether the last value of a chain of moves is the whole first tensor, in its order."""
    whole = StridedView.contiguous(df.shape_of(chain[0].expr.args[0]))
    view = follow(whole, [move for op in chain for move in op.moves or ()])
    return (
        view is not None
        and view.is_contiguous
        and view.offset == 0
        and prod(view.shape) == prod(whole.shape)
    )
