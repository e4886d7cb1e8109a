"""SpaceToDepth (TVM's importer ignores its ``mode``)."""

from __future__ import annotations

from tvm import relax

from tvm_ext.frontend.onnx_converters.values import shape_of
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


@register_onnx_converter("SpaceToDepth")
def convert_space_to_depth(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert SpaceToDepth: (N, C, H, W) -> (N, C*b*b, H/b, W/b), block position major or minor."""
    n, c, h, w = shape_of(inputs[0])
    b = attrs["blocksize"]
    split = bb.emit(relax.op.reshape(inputs[0], (n, c, h // b, b, w // b, b)))
    order = (0, 1, 3, 5, 2, 4) if attrs.get("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    moved = bb.emit(relax.op.permute_dims(split, order))
    return relax.op.reshape(moved, (n, c * b * b, h // b, w // b))
