"""Group and layer norms without weights of their own; batch norms are TVM's converter's."""

from __future__ import annotations

import numpy as np
import torch
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import const
from tvm_ext.frontend.torch_registry import Call, converts

aten = torch.ops.aten


@converts(aten.native_layer_norm.default)
def convert_layer_norm(call: Call) -> list[relax.Expr | None]:
    """Convert the normalisation over the last dimensions, without its statistics."""
    shape = tuple(call["normalized_shape"])
    out = relax.op.nn.layer_norm(
        call["input"], *_affine(call, shape), list(range(-len(shape), 0)), call["eps"]
    )
    return [out, None, None]


@converts(aten.native_group_norm.default)
def convert_group_norm(call: Call) -> list[relax.Expr | None]:
    """Convert the normalisation of groups of channels, without its statistics."""
    out = relax.op.nn.group_norm(
        call["input"],
        *_affine(call, (call["C"],)),
        num_groups=call["group"],
        channel_axis=1,
        axes=list(range(2, len(call.shape))),
        epsilon=call["eps"],
    )
    return [out, None, None]


def _affine(call: Call, shape: tuple[int, ...]) -> tuple[relax.Expr, relax.Expr]:
    """Scale and shift, ones and zeros where the module has none."""
    scale, shift = call["weight"], call["bias"]
    return (
        const(np.ones(shape), call.dtype) if scale is None else scale,
        const(np.zeros(shape), call.dtype) if shift is None else shift,
    )
