"""Sampling of images at computed positions."""

from __future__ import annotations

import torch
from tvm import relax

from tvm_ext.frontend.torch_registry import Call, converts

aten = torch.ops.aten
_METHODS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@converts(aten.grid_sampler_2d.default)
def convert_grid_sampler(call: Call) -> relax.Expr:
    """Convert samples at positions (x, y) from -1 to 1; Relax wants x and y as planes."""
    grid = call.emit(relax.op.permute_dims, call["grid"], [0, 3, 1, 2])
    return relax.op.image.grid_sample(
        call["input"],
        grid,
        method=_METHODS[call["interpolation_mode"]],
        layout="NCHW",
        padding_mode=_PADDINGS[call["padding_mode"]],
        align_corners=call["align_corners"],
    )
