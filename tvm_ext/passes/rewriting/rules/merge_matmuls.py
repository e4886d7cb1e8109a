"""Products of the same rows with several matrices: the queries, keys and values of attention."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.branch import Branch
from tvm_ext.passes.rewriting.cost import BLOCK
from tvm_ext.passes.rewriting.rule import register_rule
from tvm_ext.passes.rewriting.shared_input import SharedInput


@register_rule
class MergeMatmuls(SharedInput):
    """The rows are read once; attention reads the parts in place, others a copy of several rows."""

    name = "merge_matmuls"
    formula = "x @ v, x @ w -> slices of x @ [v w]"
    operator = "matmul"

    def key(self, branch: Branch) -> Hashable:
        weights = df.value_of(branch.anchor.args[1])
        if weights is None or weights.ndim != 2:
            return None
        return str(weights.dtype), df.dtype_of(branch.anchor)

    def axis(self, call: relax.Call) -> int:
        return len(df.shape_of(call)) - 1

    def is_view(self, shape: tuple[int, ...], begin: int, end: int) -> bool:
        return prod(shape[:-1]) == 1 and begin % BLOCK == 0

    def is_read_in_place(self, readers: Sequence[Any]) -> bool:
        # Products of two computed tensors read them through any moves.
        return all(
            df.op_name(reader) in ("relax.reshape", "relax.permute_dims") or _is_product(reader)
            for reader in readers
        )

    def join(self, shared: Any, calls: Sequence[relax.Call]) -> relax.Call:
        weights = [df.value_of(call.args[1]) for call in calls]
        joined = np.concatenate([w for w in weights if w is not None], 1)
        return relax.op.matmul(shared, df.constant(joined), calls[0].attrs.out_dtype)


def _is_product(expr: Any) -> bool:
    return df.op_name(expr) == "relax.matmul" and all(df.value_of(a) is None for a in expr.args)
