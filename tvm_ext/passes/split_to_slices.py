"""split(x)[i] -> a slice of x: parts that nobody reads are never made, others may be views."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import tvm
from tvm import relax, tirx

from tvm_ext.passes import dataflow as df


@tvm.transform.module_pass(opt_level=0, name="SplitToSlices")
class SplitToSlices:
    """Replace the items of splits; a split whose tuple itself is read stays."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`."""
        splits: dict[Any, relax.Call] = {}

        def rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
            if df.op_name(expr) == "relax.split":
                made = builder.emit(expr, var.name)
                splits[made] = expr
                return made
            if isinstance(expr, relax.TupleGetItem) and expr.tuple_value in splits:
                return _slice(splits[expr.tuple_value], expr.index)
            return expr

        return relax.transform.DeadCodeElimination()(df.rebuild(mod, rewrite))


def _slice(split: relax.Call, index: int) -> relax.Call:
    data, sections = split.args[0], split.attrs.indices_or_sections
    shape = df.shape_of(data)
    axis = int(split.attrs.axis) % len(shape)
    extent = shape[axis]
    if isinstance(sections, (int, tirx.IntImm)):
        step = -(-extent // int(sections))
        inner = list(range(step, extent, step))
    else:
        inner = [int(i) for i in sections]
    begin, end = list(pairwise([0, *inner, extent]))[index]
    return relax.op.strided_slice(data, [axis], [begin], [end])
