"""Scales and zero points of integers that no operator of their own tells: their readers do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tvm_ext.codegen.byoc.graph import Graph
from tvm_ext.passes import dataflow as df

_MOVES = ("relax.nn.max_pool2d", "relax.image.resize2d")


def scale_of(graph: Graph, var: Any) -> float | None:
    """The scale of an 8-bit value.

    Values that pools, resizes and reshapes of integers connect have one scale: the one with which
    their source was quantised, or else with which the first reader dequantises. None where nothing
    tells it, and then nothing depends on it.
    """
    while _moves(graph, var):
        var = graph.value(var).args[0]
    value = graph.value(var)
    if df.op_name(value) == "relax.quantize":
        return _single(graph.constant(value.args[1]))
    for reader in _readers(graph, var):
        if graph.op(reader) == "relax.dequantize":
            return _single(graph.constant(graph.value(reader).args[1]))
    return None


def zero_of(graph: Graph, var: Any) -> np.ndarray | None:
    """The zero point of an 8-bit value, in its own type, as its readers say it.

    A reader dequantises, or subtracts it from the value as int32. None where nothing tells it.
    """
    for reader in _readers(graph, var):
        if graph.op(reader) == "relax.dequantize":
            return graph.constant(graph.value(reader).args[2])
        if graph.op(reader) == "relax.astype" and df.dtype_of(reader) == "int32":
            for user in graph.readers(reader):
                if user is not None and graph.op(user) == "relax.subtract":
                    return graph.constant(graph.value(user).args[1])
            return np.zeros((), "int32")
    return None


def _readers(graph: Graph, var: Any) -> Iterator[Any]:
    """What reads a value, or a pool or reshape of it; nearest first."""
    waiting = [var]
    while waiting:
        for reader in graph.readers(waiting.pop(0)):
            if reader is None:
                continue
            yield reader
            if _moves(graph, reader):
                waiting.append(reader)


def _moves(graph: Graph, var: Any) -> bool:
    return moves_integers(graph.value(var))


def moves_integers(value: Any) -> bool:
    """Whether a call gives some of the values that it reads, as a pool or reshape does."""
    return df.op_name(value) in _MOVES or df.is_view(value)


def _single(scale: np.ndarray | None) -> float | None:
    return None if scale is None or scale.size != 1 else float(np.float32(scale.reshape(())))
