"""batch_norm at inference -> x * scale + shift.

With gamma, beta, mean and variance of shape (C,) constant:
``scale = gamma / sqrt(variance + epsilon)``, ``shift = beta - mean * scale``, both (1, C, 1, ..),
computed in float64. `FoldScale` then moves them into a convolution where there is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df


@tvm.transform.module_pass(opt_level=0, name="SimplifyBatchNorm")
class SimplifyBatchNorm:
    """Turn every batch norm with constant statistics into a multiply and an add."""

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`."""
        return df.rebuild(mod, _rewrite)


def _rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
    if df.op_name(expr) != "relax.nn.batch_norm":
        return expr
    x, *rest = expr.args
    arrays = [df.value_of(a) for a in rest]
    if any(a is None for a in arrays) or expr.attrs.training:
        return expr
    gamma, beta, mean, variance = (np.asarray(a, "float64") for a in arrays)
    gamma = gamma if expr.attrs.scale else np.ones_like(gamma)
    beta = beta if expr.attrs.center else np.zeros_like(beta)
    scale = gamma / np.sqrt(variance + float(expr.attrs.epsilon))
    shift = beta - mean * scale
    shape = [1] * len(df.shape_of(x))
    shape[int(expr.attrs.axis)] = -1
    dtype = df.dtype_of(x)
    scale_const, shift_const = (df.constant(a.reshape(shape).astype(dtype)) for a in (scale, shift))
    scaled = builder.emit(relax.op.multiply(x, scale_const))
    shifted = builder.emit(relax.op.add(scaled, shift_const))
    # Inference only reads the first of the three results; the other two pass through unchanged.
    return relax.Tuple([shifted, rest[2], rest[3]])
