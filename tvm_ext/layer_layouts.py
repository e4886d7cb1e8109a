"""Which layouts a layer's tensors may have, by its algorithm, and have, by its plan."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df
from tvm_ext.plan import LayerPlan
from tvm_ext.schedules.base import Algorithm
from tvm_ext.schedules.elementwise_planes import is_map
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.layout import layout_block, layout_name
from tvm_ext.schedules.workload import kernel_operands
from tvm_ext.target import CpuTarget

# Algorithms without a kernel file: the same bytes under another shape, and TVM's own operators.
VIEW, GENERIC = "view", "generic"
# A subgraph that an accelerator computes.
OFFLOAD = "offload"
# TVM's own operators under a measured schedule; it takes any layer that has a tensor program.
TUNED = "tuned"


def layer_blocks(layer: Layer, entry: LayerPlan) -> tuple[int, int]:
    """Channel blocks of a planned layer's input and output."""
    return layout_block(entry.layout[0]), layout_block(entry.layout[1])


def reads_as(shape: tuple[int, ...], stored: int, wanted: int) -> bool:
    """Whether a tensor in one layout can be read in another without being moved.

    A single position of one sample is a run of channels in any layout, which blocks may pad; more
    samples are, where the channels fill the blocks.
    """
    if stored == wanted:
        return True
    if len(shape) < 3 or prod(shape[2:]) != 1:
        return False
    full = all(block == 0 or shape[1] % block == 0 for block in (stored, wanted))
    return full or (wanted == 0 and shape[0] == 1)


def legal_layouts(
    layer: Layer, algorithm: Algorithm[Any], target: CpuTarget
) -> list[tuple[int, int]]:
    """The algorithm's layouts that the layer's tensors can have."""
    out_rank = len(layer.workload.out_shape)
    ranks = [len(df.shape_of(x)) for x in layer.inputs] or [out_rank]
    return [
        pair
        for pair in algorithm.layouts(layer.workload, target)
        if (pair[0] == 0 or min(ranks) > 2) and (pair[1] == 0 or out_rank > 2)
    ]


def pair_names(layer: Layer, pair: tuple[int, int]) -> list[str]:
    """The names of a layer's input and output layouts, such as NCHW16c."""
    out_rank = len(layer.workload.out_shape)
    in_rank = len(df.shape_of(layer.inputs[0])) if layer.inputs else out_rank
    return [layout_name(in_rank, pair[0]), layout_name(out_rank, pair[1])]


def needed(layer: Layer, pair: tuple[int, int]) -> list[tuple[Any, int]]:
    """The (value, block) pairs that a layer reads."""
    if not layer.inputs and not layer.operands:
        return [(var, 0) for var in layer.arguments]
    found = [(var, pair[0]) for var in layer.inputs]
    for value, operand in zip(layer.operands, kernel_operands(layer.workload), strict=True):
        if not isinstance(value, np.ndarray):
            found.append((value, operand_block(layer, operand, pair)))
    return found


def operand_block(layer: Layer, operand: Operand, pair: tuple[int, int]) -> int:
    """The channel block in which a layer reads an operand: that of its output.

    A chain alone, which has no other input, takes maps in the block of its input.
    """
    if len(operand.shape) < 3 or operand.shape[1] == 1:
        return 0
    if pair[1] or layer.inputs:
        return pair[1]
    return pair[0] if is_map(operand) else 0


def reads(layer: Layer, plan: LayerPlan) -> list[tuple[Any, int]]:
    """The (value, block) pairs that a planned layer reads."""
    if plan.algorithm in (GENERIC, OFFLOAD, TUNED) and layer.arguments:
        return [(var, 0) for var in layer.arguments]
    return needed(layer, layer_blocks(layer, plan))
