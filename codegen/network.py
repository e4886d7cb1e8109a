"""A network of int8 layers: what one offloaded part of a model computes, for any accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tvm_ext.codegen.errors import NetworkError
from tvm_ext.codegen.network_elementwise import (
    Abs,
    Add,
    LeakyRelu,
    Maximum,
    Minimum,
    Multiply,
    Relu,
    Requantize,
)
from tvm_ext.codegen.network_layers import Conv, Layer, MatMul, TensorSpec
from tvm_ext.codegen.network_moves import Concat, Interleave, Reshape
from tvm_ext.codegen.network_pool import Pool

LAYERS: tuple[type[Layer], ...] = (
    Conv, MatMul, Pool, Add, Multiply, Minimum, Maximum, Abs, Relu, LeakyRelu, Requantize, Concat,
    Interleave, Reshape,
)  # fmt: skip
"""Every kind of layer."""


@dataclass(frozen=True, eq=False)
class Network:
    """Layers in execution order, their tensors and their constants.

    Attributes
    ----------
    name : str
    inputs, outputs : tuple of str
        Tensors that come from and go to the rest of the model. An output may be read inside, too.
    tensors : Mapping of str to TensorSpec
        Every activation, by name.
    layers : tuple of Layer
        Each reads inputs or results of layers before it.
    constants : Mapping of str to ndarray
        Weights int8, biases int32, scales float32. One constant may serve several layers.

    Raises
    ------
    NetworkError
        At construction, naming the first layer or tensor that doesn't fit.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, TensorSpec]
    layers: tuple[Layer, ...]
    constants: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse a network that isn't consistent.

        Raises
        ------
        NetworkError
        """
        for key, spec in self.tensors.items():
            wrong = spec.problem() or (f"it is listed as {key!r}" if key != spec.name else "")
            if wrong:
                raise NetworkError(f"network {self.name}: tensor {spec.name}: {wrong}")
        if len({layer.name for layer in self.layers}) < len(self.layers):
            raise NetworkError(f"network {self.name}: two layers have the same name")
        written = self._checked_inputs()
        for layer in self.layers:
            if wrong := self._problem(layer, written):
                raise NetworkError(f"network {self.name}: layer {layer.name}: {wrong}")
            written.add(layer.output)
        if missing := [name for name in self.outputs if name not in written]:
            raise NetworkError(f"network {self.name}: nothing writes the output {missing[0]!r}")
        if unused := set(self.tensors) - written:
            raise NetworkError(f"network {self.name}: nothing writes the tensor {min(unused)!r}")

    def macs(self) -> int:
        """Multiply-accumulates of all layers."""
        return sum(self.layer_macs(layer) for layer in self.layers)

    def layer_macs(self, layer: Layer) -> int:
        """Multiply-accumulates of one layer."""
        return layer.macs(self.tensors, self.constants)

    def _checked_inputs(self) -> set[str]:
        if not self.inputs or not self.outputs:
            raise NetworkError(f"network {self.name}: it needs an input and an output")
        for name in self.inputs:
            if name not in self.tensors:
                raise NetworkError(f"network {self.name}: input {name!r} is no tensor of it")
        return set(self.inputs)

    def _problem(self, layer: Layer, written: set[str]) -> str:
        if type(layer) not in LAYERS:
            return f"unknown kind {type(layer).__name__}"
        if not layer.inputs:
            return "it reads nothing"
        for name in layer.inputs:
            if name not in written:
                return f"it reads {name!r}, which nothing before it writes"
        if layer.output in written:
            return f"it writes {layer.output!r}, which is written before"
        if layer.output not in self.tensors:
            return f"its output {layer.output!r} is no tensor of the network"
        return layer.problem(self.tensors, self.constants)
