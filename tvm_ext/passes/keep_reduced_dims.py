"""mean(x, spatial axes) -> reshape(mean(x, spatial axes, keepdims)): the global average pool.

PyTorch's ``x.mean([2, 3])`` is one. With its dimensions of 1 it has our pool's kernels, which
products and norms behind it may join; the reshape is a view.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import reduced_axes, reduces_positions, reshape


@tvm.transform.module_pass(opt_level=0, name="KeepReducedDims")
class KeepReducedDims:
    """Replace means over all positions of each channel; others stay."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`."""

        def rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
            if df.op_name(expr) != "relax.mean" or expr.attrs.keepdims:
                return expr
            if not reduces_positions(expr):
                return expr
            axes = list(reduced_axes(expr))
            pooled = builder.emit(relax.op.mean(expr.args[0], axes, keepdims=True))
            return reshape(pooled, df.shape_of(var))

        return df.rebuild(mod, rewrite)
