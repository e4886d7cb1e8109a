"""Layers that read the tensor behind a reshape, in whatever layout it has.

A reshape is a view of the model's own order; of a feature map in channel blocks it would need a
conversion. A product with constant weights and a transposition take the map itself, with the
reshape in their workload. Nothing changes where the map is in the model's own order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_ext.passes import dataflow as df
from tvm_ext.schedules.flattened import reads_blocks
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.shuffle import reads_parts
from tvm_ext.schedules.stages import stages, with_first_stage
from tvm_ext.schedules.workload import TransposeWorkload, ViewWorkload

if TYPE_CHECKING:
    from tvm_ext.layers import Layer


def read_through_views(layers: list[Layer]) -> list[Layer]:
    """The layers, of which those that can read what a reshape views.

    The views stay, for their other readers and for TVM's own operators.
    """
    views: dict[Any, Layer] = {}
    found = []
    for layer in layers:
        if isinstance(layer.workload, ViewWorkload):
            views[layer.output] = layer
        elif layer.inputs and layer.inputs[0] in views:
            layer = _behind(layer, views)
        found.append(layer)
    return found


def unread_views(layers: list[Layer]) -> set[Any]:
    """Outputs of views that only layers have as arguments that read through them."""
    read: set[Any] = set()
    unread: set[Any] = set()
    arguments = {x for layer in layers for x in layer.arguments}
    for layer in reversed(layers):
        is_view = isinstance(layer.workload, ViewWorkload)
        if is_view and layer.output in arguments and layer.output not in read:
            unread.add(layer.output)
        elif layer.inputs or layer.operands:
            read.update(layer.inputs)
            read.update(x for x in layer.operands if not isinstance(x, np.ndarray))
        else:
            read.update(layer.arguments)
    return unread


def _behind(layer: Layer, views: dict[Any, Layer]) -> Layer:
    """The layer with the first tensor behind its input that it can read in blocks."""
    var = layer.inputs[0]
    while var in views:
        var = views[var].inputs[0]
        workload = _reading(layer.workload, df.shape_of(var))
        if workload is not None:
            return replace(layer, workload=workload, inputs=(var, *layer.inputs[1:]))
    return layer


def _reading(workload: Any, shape: tuple[int, ...]) -> Any:
    """The workload with an argument of that shape, if it is one that may come in blocks."""
    if len(shape) < 3 or all(n == 1 for n in shape[2:]):
        return None
    first = stages(workload)[0]
    if isinstance(first, MatmulWorkload):
        through = replace(first, lhs_shape=shape)
        return with_first_stage(workload, through) if reads_blocks(through, 1) else None
    if isinstance(workload, TransposeWorkload):
        through = replace(workload, source=shape)
        return through if reads_parts(through) else None
    return None
