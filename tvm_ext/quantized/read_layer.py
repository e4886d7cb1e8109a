"""A quantised operator of the model, as the workload of a kernel of integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_ext.codegen.arithmetic import average_scale
from tvm_ext.codegen.byoc.subgraph import Subgraph
from tvm_ext.codegen.network_elementwise import Add, Multiply, Relu, Requantize
from tvm_ext.codegen.network_layers import FULL_RANGE, Conv, Layer, MatMul, Pair, Shape
from tvm_ext.codegen.network_pool import Pool
from tvm_ext.quantized.pointwise_steps import pointwise
from tvm_ext.schedules.quantized_workload import (
    QuantizedConvWorkload,
    QuantizedMatmulWorkload,
    QuantizedPoolWorkload,
    Requantization,
)


@dataclass(frozen=True)
class IntegerLayer:
    """What a kernel needs to know of a quantised operator.

    Attributes
    ----------
    workload : object
        Of `tvm_ext.schedules.quantized_workload`, or an `ElementwiseWorkload`, whose operands are
        the operator's inputs in order.
    weights : tuple of ndarray
        int8 weights, int32 bias and float32 scales of a product.
    """

    workload: Any
    weights: tuple[np.ndarray, ...] = ()

    @property
    def pointwise(self) -> bool:
        """Whether the inputs are an epilogue's operands."""
        return hasattr(self.workload, "epilogue")


@dataclass(frozen=True)
class _Reader:
    """One layer of a subgraph, its tensors with their batch and in the model's own type."""

    subgraph: Subgraph
    layer: Any

    @property
    def dtype(self) -> str:
        return "uint8" if self.subgraph.unsigned else "int8"

    @property
    def shift(self) -> int:
        """What the model's values are more than the network's."""
        return 128 if self.subgraph.unsigned else 0

    def shape(self, name: str) -> Shape:
        first, *rest = self.subgraph.network.tensors[name].shape
        return (first * self.subgraph.batch, *rest)

    def zero(self, name: str) -> int:
        return int(self.subgraph.network.tensors[name].zero_point) + self.shift

    def result(self, clamp: Pair) -> Requantization:
        low, high = (limit + self.shift for limit in clamp)
        return Requantization(self.zero(self.layer.output), low, high)

    def constants(self, *names: str) -> tuple[np.ndarray, ...]:
        return tuple(self.subgraph.network.constants[name] for name in names)


def integer_layer(subgraph: Subgraph) -> IntegerLayer | str:
    """The workload of a subgraph of one layer, or the reason why there is no kernel for it."""
    layers = subgraph.network.layers
    if len(layers) != 1:
        return f"{len(layers)} layers; only 1"
    read = _READERS.get(type(layers[0]))
    if read is None:
        return f"no kernel of integers for {type(layers[0]).__name__}"
    return read(_Reader(subgraph, layers[0]))


def _conv(r: _Reader) -> IntegerLayer | str:
    layer: Conv = r.layer
    top, left, bottom, right = layer.pads
    weights = r.constants(layer.weight, layer.bias, layer.scales)
    batch, channels, *spatial = r.shape(layer.inputs[0])
    return IntegerLayer(
        QuantizedConvWorkload(
            batch, channels, tuple(spatial), weights[0].shape[0], weights[0].shape[2:],
            layer.strides, (top, left), (bottom, right), layer.dilations,
            r.zero(layer.inputs[0]), r.result(layer.clamp), r.dtype, layer.groups,
        ),
        weights,
    )  # fmt: skip


def _matmul(r: _Reader) -> IntegerLayer | str:
    layer: MatMul = r.layer
    weights = r.constants(layer.weight, layer.bias, layer.scales)
    rows, depth = r.shape(layer.inputs[0])
    zero, result = r.zero(layer.inputs[0]), r.result(layer.clamp)
    columns = weights[0].shape[1]
    return IntegerLayer(
        QuantizedMatmulWorkload(rows, depth, columns, zero, result, r.dtype), weights
    )


def _pool(r: _Reader) -> IntegerLayer | str:
    layer: Pool = r.layer
    (top, left, bottom, right), shape = layer.pads, r.shape(layer.inputs[0])
    if layer.kind == "average":
        return "no kernel of integers for averages that aren't global"
    common: dict[str, Any] = {
        "kind": layer.kind, "shape": shape, "kernel": layer.kernel, "strides": layer.strides,
        "pad_before": (top, left), "pad_after": (bottom, right), "dtype": r.dtype,
    }  # fmt: skip
    if layer.kind == "max":
        return IntegerLayer(QuantizedPoolWorkload(**common))
    tensors = r.subgraph.network.tensors
    x, y = tensors[layer.inputs[0]], tensors[layer.output]
    scale = float(average_scale(x, y, shape[2] * shape[3]))
    zero, result = r.zero(layer.inputs[0]), r.result(FULL_RANGE)
    return IntegerLayer(QuantizedPoolWorkload(**common, x_zero=zero, scale=scale, result=result))


def _pointwise(r: _Reader) -> IntegerLayer | str:
    network = r.subgraph.network
    shape = r.shape(r.layer.output)
    return IntegerLayer(pointwise(r.layer, network, shape, r.subgraph.unsigned))


_READERS: dict[type[Layer], Callable[[_Reader], IntegerLayer | str]] = {
    Conv: _conv,
    MatMul: _matmul,
    Pool: _pool,
    Add: _pointwise,
    Multiply: _pointwise,
    Requantize: _pointwise,
    Relu: _pointwise,
}
