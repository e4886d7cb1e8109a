"""slice(transpose(x)) -> transpose(slice(x)): if its parts alone are read, x isn't moved whole.

Attention makes queries, keys and values in one product, transposes the whole and cuts it. Moved
behind the cuts, each transposition has one reader, which can read its part in place.

Several parts of the last axis stay behind the transposition: its rows are together there.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import permutation
from tvm_ext.passes.fusion.moves import slices_of


@tvm.transform.module_pass(opt_level=0, name="SliceBeforeTranspose")
class SliceBeforeTranspose:
    """Rewrite transpositions of which only slices are read, at known places."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`."""
        readers = df.uses(mod["main"])
        exprs = dict(df.bindings(mod["main"]))
        cut = {
            var
            for var, expr in exprs.items()
            if df.op_name(expr) == "relax.permute_dims"
            and _only_cut([exprs.get(reader) for reader in readers.get(var, [None])])
        }
        transposed: dict[Any, relax.Call] = {}

        def rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
            if var in cut:
                made = builder.emit(expr, var.name)
                transposed[made] = expr
                return made
            if _is_slice(expr) and expr.args[0] in transposed:
                return _swapped(builder, transposed[expr.args[0]], expr)
            return expr

        return relax.transform.DeadCodeElimination()(df.rebuild(mod, rewrite))


def _is_slice(expr: Any) -> bool:
    return df.op_name(expr) == "relax.strided_slice" and slices_of(expr) is not None


def _only_cut(readers: list[Any]) -> bool:
    """Whether all readers are slices, and not several of the last axis."""
    if not all(map(_is_slice, readers)):
        return False
    axes = [axis for reader in readers for _, axis, *_ in slices_of(reader) or ()]
    return len(readers) == 1 or len(df.shape_of(readers[0])) - 1 not in axes


def _swapped(builder: relax.BlockBuilder, transpose: relax.Call, cut: relax.Call) -> relax.Call:
    axes = permutation(transpose)
    slices = slices_of(cut) or ()
    begins = [begin for _, _, begin, _, _ in slices]
    # An end before the first element, where a slice goes backwards to it.
    ends = [
        begin + count * step if begin + count * step >= 0 else -(1 << 31)
        for _, _, begin, count, step in slices
    ]
    part = relax.op.strided_slice(
        transpose.args[0],
        [axes[axis] for _, axis, *_ in slices],
        begins,
        ends,
        [step for *_, step in slices],
    )
    return relax.op.permute_dims(builder.emit(part), list(axes))
