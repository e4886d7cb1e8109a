"""The nests of a network: what each layer is for an accelerator."""

from __future__ import annotations

from dataclasses import replace

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.isa.window import KERNEL_LIMIT
from tvm_ext.codegen.lowering import nest as kinds
from tvm_ext.codegen.lowering.footprint import INT32_BYTES
from tvm_ext.codegen.lowering.nest import Fold, Nest
from tvm_ext.codegen.lowering.views import Placement, View, dense_view, parts_of
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_elementwise import Requantize
from tvm_ext.codegen.network_layers import Conv, Layer, MatMul
from tvm_ext.codegen.network_moves import Concat, Interleave
from tvm_ext.codegen.network_pool import Pool

SUMS = ":sums"
"""Suffix of the int32 sums of a layer, where they go through system memory."""


def nests_of(
    network: Network, layer: Layer, placement: Placement, accelerator: Accelerator
) -> list[Nest]:
    """The nests of one layer; none where views move no data. A `Reshape` is no nest.

    Raises
    ------
    LoweringError
        The accelerator can't run the layer.
    """
    views = placement.views
    inputs, output = tuple(views[name] for name in layer.inputs), views[layer.output]
    if isinstance(layer, Conv):
        return [_conv(network, layer, inputs, output, accelerator)]
    if isinstance(layer, MatMul):
        depth = inputs[0].shape[2]
        return [
            Nest(
                layer.name, "MATMUL", kinds.MATMUL, layer, inputs, output, reduction=depth,
                taps_bytes=1, bias_bytes=INT32_BYTES, scale_bytes=INT32_BYTES,
            )
        ]  # fmt: skip
    if isinstance(layer, Pool):
        _check_kernel(layer.name, layer.kernel)
        return [
            Nest(
                layer.name, "POOL", kinds.POOL, layer, inputs, output, layer.kernel,
                layer.strides, pads=layer.pads[:2],
            )
        ]  # fmt: skip
    if isinstance(layer, (Concat, Interleave)):
        return _copies(layer, inputs, output)
    kind = "REQUANT" if isinstance(layer, Requantize) else "ELEMENTWISE"
    repeated = tuple(view.repeated(output.shape) for view in inputs)
    return [Nest(layer.name, kind, kinds.ELEMENTWISE, layer, repeated, output)]


def folded(nest: Nest, lanes: int) -> Nest | None:
    """A convolution with a row of its taps as channels, None where that keeps no more lanes busy.

    For input-parallel PEs; the layer reads an input of the network, which is loaded in rows.
    """
    kernel, reduction = nest.kernel[1], nest.reduction * nest.kernel[1]
    passes, before = -(-reduction // lanes), kernel * -(-nest.reduction // lanes)
    if nest.operation != kinds.CONV or nest.dilations[1] > 1 or passes >= before:
        return None
    width, left = nest.inputs[0].shape[1], nest.pads[1]
    reach = (nest.output.shape[1] - 1) * nest.strides[1] + kernel
    fold = Fold(nest.reduction, nest.strides[1], left, max(0, reach - left - width))
    return replace(
        nest, kernel=(nest.kernel[0], 1), strides=(nest.strides[0], 1), pads=(nest.pads[0], 0),
        reduction=reduction, taps_bytes=nest.kernel[0], fold=fold,
    )  # fmt: skip


def with_round_trip(nest: Nest) -> list[Nest]:
    """A convolution or product whose sums go to system memory as int32 and come back for
    requantisation, in nests of their own; other nests stay.
    """
    if not nest.has_parameters:
        return [nest]
    sums = dense_view(nest.output.storage + SUMS, nest.output.shape, INT32_BYTES)
    return [
        replace(nest, output=sums, wide=True, scale_bytes=0),
        Nest(
            nest.name, "REQUANT", kinds.SHIFT, nest.layer, (sums,), nest.output,
            scale_bytes=nest.scale_bytes,
        ),
    ]  # fmt: skip


def _conv(
    network: Network, layer: Conv, inputs: tuple[View, ...], output: View, accelerator: Accelerator
) -> Nest:
    weight = network.constants[layer.weight]
    kernel = (weight.shape[2], weight.shape[3])
    _check_kernel(layer.name, kernel)
    operation, kind, reduction = kinds.CONV, "CONV", weight.shape[1]
    if layer.is_depthwise():
        if accelerator.depthwise == "none":
            raise LoweringError(
                f"layer {layer.name}: a depthwise convolution on accelerator {accelerator.name} "
                "with depthwise 'none'; allowed with: software, hardware"
            )
        hardware = accelerator.depthwise == "hardware"
        operation = kinds.DEPTH if hardware else kinds.DEPTH_AS_CONV
        kind, reduction = "DEPTH", 0
    return Nest(
        layer.name, kind, operation, layer, inputs, output, kernel, layer.strides,
        layer.dilations, layer.pads[:2], reduction, kernel[0] * kernel[1], INT32_BYTES, INT32_BYTES,
    )  # fmt: skip


def _check_kernel(layer: str, kernel: tuple[int, int]) -> None:
    if max(kernel) > KERNEL_LIMIT:
        raise LoweringError(
            f"layer {layer}: a window of {kernel[0]} x {kernel[1]}; "
            f"allowed: sides of 1 to {KERNEL_LIMIT}"
        )


def _copies(layer: Concat | Interleave, inputs: tuple[View, ...], output: View) -> list[Nest]:
    """A copy for each input that isn't a part of the result already."""
    nests = []
    for index, (view, part) in enumerate(
        zip(inputs, parts_of(layer, output, [view.shape for view in inputs]), strict=True)
    ):
        if view != part:
            name = f"{layer.name}:{index}"
            nests.append(Nest(name, "MOVE", kinds.ELEMENTWISE, layer, (view,), part))
    return nests
