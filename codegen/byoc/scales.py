"""Scales of integers that no operator of their own tells: those of who moves or reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_ext.codegen.byoc.graph import Graph
from tvm_ext.passes import dataflow as df

_MOVES = ("relax.nn.max_pool2d",)


def scale_of(graph: Graph, var: Any) -> float | None:
    """The scale of an 8-bit value.

    Values that pools and reshapes of integers connect have one scale: the one with which their
    source was quantised, or else with which the first reader dequantises. None where nothing tells
    it, and then nothing depends on it.
    """
    while _moves(graph, var):
        var = graph.value(var).args[0]
    value = graph.value(var)
    if df.op_name(value) == "relax.quantize":
        return _single(graph.constant(value.args[1]))
    waiting = [var]
    while waiting:
        for reader in graph.readers(waiting.pop(0)):
            if reader is None:
                continue
            if graph.op(reader) == "relax.dequantize":
                return _single(graph.constant(graph.value(reader).args[1]))
            if _moves(graph, reader):
                waiting.append(reader)
    return None


def _moves(graph: Graph, var: Any) -> bool:
    value = graph.value(var)
    return df.op_name(value) in _MOVES or df.is_view(value)


def _single(scale: np.ndarray | None) -> float | None:
    return None if scale is None or scale.size != 1 else float(np.float32(scale.reshape(())))
