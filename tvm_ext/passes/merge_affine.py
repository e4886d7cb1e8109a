"""((x * a) + b) * c + d -> x * (a c) + (b c + d).

Chains of multiplies and adds with constants, as batch norms followed by scale layers leave them,
become one multiply and one add. The constants are combined in float64; (C, 1, 1) and scalars
broadcast as numpy does. `FoldScale` then moves them into a convolution where there is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df

_AFFINE = ("relax.add", "relax.multiply")


@tvm.transform.module_pass(opt_level=0, name="MergeAffine")
class MergeAffine:
    """Merge chains of constant multiplies and adds whose intermediate values nobody else reads."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`."""
        readers = df.uses(mod["main"])
        single = {var for var, users in readers.items() if len(users) == 1}
        chains: dict[Any, tuple[Any, np.ndarray | None, np.ndarray | None]] = {}

        def rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
            name = df.op_name(expr)
            split = _split(expr) if name in _AFFINE else None
            if split is None or "float" not in df.dtype_of(var):
                return expr
            source, factor = split
            if df.shape_of(source) != df.shape_of(var):
                return expr
            base, scale, shift = chains.get(source, (source, None, None))
            long_enough = scale is not None or shift is not None
            if name == "relax.multiply":
                scale = factor if scale is None else scale * factor
                shift = None if shift is None else shift * factor
            else:
                shift = factor if shift is None else shift + factor
            new = _emit(builder, base, scale, shift) if long_enough else builder.emit(expr)
            if var in single:
                chains[new] = (base, scale, shift)
            return new

        return relax.transform.DeadCodeElimination()(df.rebuild(mod, rewrite))


def _split(expr: relax.Call) -> tuple[Any, np.ndarray] | None:
    """The variable and the constant of a commutative call; None without exactly one constant."""
    for a, b in (expr.args, tuple(reversed(expr.args))):
        value = df.value_of(b)
        if isinstance(a, relax.Var) and value is not None and _small(value, df.shape_of(a)):
            return a, value.astype("float64")
    return None


def _small(value: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether a constant varies along one dimension only, so that merging can't enlarge it."""
    return value.ndim <= len(shape) and sum(d != 1 for d in value.shape) <= 1


def _emit(
    builder: relax.BlockBuilder, base: Any, scale: np.ndarray | None, shift: np.ndarray | None
) -> Any:
    dtype, value = df.dtype_of(base), base
    if scale is not None:
        value = builder.emit(relax.op.multiply(value, df.constant(scale.astype(dtype))))
    if shift is not None:
        value = builder.emit(relax.op.add(value, df.constant(shift.astype(dtype))))
    return value
