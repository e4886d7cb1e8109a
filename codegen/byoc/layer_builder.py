"""The layers of one match while a pattern makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tvm_ext.codegen.byoc.graph import Quantized, Refused
from tvm_ext.codegen.network_layers import FULL_RANGE, Layer, Pair, TensorSpec


class LayerBuilder:
    """Collects layers, tensors and constants, named after the value that they compute.

    Parameters
    ----------
    output : Quantized
        What the match computes.
    clamp : (low, high)
        int8 limits of it.
    """

    def __init__(self, output: Quantized, clamp: Pair = FULL_RANGE) -> None:
        self.output, self.clamp = output, clamp
        self.name = output.name
        self.layers: list[Layer] = []
        self.tensors: dict[str, TensorSpec] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: list[Quantized] = []
        self.tensor(output)

    def tensor(self, x: Quantized) -> TensorSpec:
        """The tensor of an activation."""
        scale = 1.0 if x.scale is None else x.scale
        return self._spec(TensorSpec(x.name, x.shape, "int8", scale, x.zero_point))

    def read(self, x: Quantized) -> str:
        """The name of an activation that is read."""
        if all(x.var is not known.var for known in self.inputs):
            self.inputs.append(x)
        return self.tensor(x).name

    def temporary(self, suffix: str, shape: tuple[int, ...], scale: float, zero_point: int) -> str:
        """The name of a new tensor between two layers."""
        name = f"{self.name}.{suffix}"
        return self._spec(TensorSpec(name, shape, "int8", scale, zero_point)).name

    def constant(self, suffix: str, array: np.ndarray) -> str:
        """The name of a new constant."""
        name = f"{self.name}.{suffix}"
        self.constants[name] = np.ascontiguousarray(array)
        return name

    def add(self, layer: type[Layer], inputs: tuple[str, ...], output: str, **fields: Any) -> None:
        """A layer, named after what it writes."""
        self.layers.append(layer(name=output, inputs=inputs, output=output, **fields))

    def _spec(self, spec: TensorSpec) -> TensorSpec:
        # The batch is taken apart later; all else has to be right now.
        shape = (1, *spec.shape[1:]) if len(spec.shape) == 4 else spec.shape
        if problem := replace(spec, shape=shape).problem():
            raise Refused(problem)
        known = self.tensors.setdefault(spec.name, spec)
        if known != spec:
            raise Refused(
                f"{spec.name} is read with scale {spec.scale} and zero point {spec.zero_point}, "
                f"and with {known.scale} and {known.zero_point}; allowed: one of each"
            )
        return spec
