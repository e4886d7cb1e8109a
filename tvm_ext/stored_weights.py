"""The weights of a program, packed as its kernels read them, each kept once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tvm_ext.layer_layouts import layer_blocks
from tvm_ext.layers import Layer
from tvm_ext.plan import LayerPlan
from tvm_ext.program_builder import ProgramBuilder
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.flattened import reordered
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.stages import stages
from tvm_ext.target import CpuTarget


class StoredWeights:
    """The constant buffers of a program that grows.

    Parameters
    ----------
    builder : ProgramBuilder
    target : CpuTarget
    """

    def __init__(self, builder: ProgramBuilder, target: CpuTarget) -> None:
        self.builder, self.target = builder, target
        self._by_layer: dict[Any, list[int]] = {}
        # By what they are packed from and how they are stored.
        self._packings: dict[Any, list[int]] = {}
        self._constants: dict[Any, int] = {}

    def constant(self, array: np.ndarray) -> int:
        """The buffer of a constant, once for all layers that read the same memory."""
        key = (array.ctypes.data, array.shape, str(array.dtype))
        if key not in self._constants:
            self._constants[key] = self.builder.constant(array)
        return self._constants[key]

    def packed(self, layer: Layer, entry: LayerPlan) -> list[int]:
        """The packed weights, once for all layers that have the same ones: steps of an LSTM."""
        if not layer.weights:
            return []
        memory = tuple((w.ctypes.data, w.shape, w.strides) for w in layer.weights)
        first, weights = stages(layer.workload)[0], layer.weights
        is_product = isinstance(first, MatmulWorkload)
        # Only a product's weights depend on what it reads.
        block = layer_blocks(layer, entry)[0] if is_product else 0
        params = tuple(sorted(entry.params.items()))
        key = (entry.algorithm, shape_alone(layer.workload), params, block, memory)
        if key not in self._by_layer:
            if is_product:
                weights = (*weights[:-1], reordered(first, weights[-1], block))
            packed = algorithms(layer.workload)[entry.algorithm].pack(
                layer.workload, entry.params, self.target, weights
            )
            self._by_layer[key] = [self._stored(array, frozenset(memory)) for array in packed]
        return self._by_layer[key]

    def _stored(self, packed: np.ndarray, weights: frozenset[Any]) -> int:
        """The buffer of packed weights, which other stages and layers may have, too."""
        known = self._packings.setdefault((weights, packed.shape, str(packed.dtype)), [])
        constants = self.builder.constants
        same = (number for number in known if np.array_equal(constants[number], packed))
        if (number := next(same, None)) is None:
            known.append(number := self.builder.constant(packed))
        return number


def shape_alone(workload: Any) -> Any:
    """The workload as kernels see it: they know nothing of the weights but their shape."""
    if getattr(workload, "sparsity", None) is None:
        return workload
    return replace(workload, sparsity=None)
