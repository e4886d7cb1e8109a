"""What a network computes, in NumPy: sums in int64 wrapped to int32, factors in float32.

It defines the results that a simulator or a device has to give, and is written for clarity. Its
own oracle is ONNX Runtime. Where that rounds otherwise:

- AveragePool: ONNX Runtime sums and divides in float32 and adds the zero point before it rounds.
  At ties and next to them a result is one step off. GlobalAveragePool is the same in both.
- LeakyRelu, Requantize, and an `Add` that stands for sums and products with constants: where no
  float32 factor gives the model's own results of all 256 values, some are one step off.
- A bias or batch norm that isn't quantised with the product of its convolution's scales is rounded
  to it: at most half a step of the accumulator.
- Convolutions with 8-bit weights on x86-64 CPUs without VNNI: ONNX Runtime's sums of pairs may
  saturate at 16 bits. That is no rounding; with VNNI, or weights within [-64, 64], results agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvm_ext.codegen.arithmetic import average_scale, fused
from tvm_ext.codegen.network import Network
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
from tvm_ext.codegen.network_layers import FULL_RANGE, Conv, Layer, MatMul, Pair, TensorSpec
from tvm_ext.codegen.network_moves import Concat, Interleave, Reshape
from tvm_ext.codegen.network_pool import Pool

Values = dict[str, np.ndarray]


def run_reference(network: Network, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run a network.

    Parameters
    ----------
    inputs : Mapping of str to ndarray
        int8 arrays of the inputs' shapes.

    Returns
    -------
    dict of str to ndarray
        The outputs, int8.
    """
    values = run_reference_all(network, inputs)
    return {name: values[name] for name in network.outputs}


def run_reference_all(network: Network, inputs: Mapping[str, np.ndarray]) -> Values:
    """Every tensor of a run; arguments as of `run_reference`."""
    values: Values = {name: np.asarray(inputs[name]) for name in network.inputs}
    for layer in network.layers:
        arrays = [values[name] for name in layer.inputs]
        specs = [network.tensors[name] for name in layer.inputs]
        made = _RULES[type(layer)](layer, arrays, specs, network)
        values[layer.output] = made.astype("int8")
    return values


def wrap_int32(total: np.ndarray) -> np.ndarray:
    """The low 32 bits of int64 sums, two's complement."""
    return total.astype("int64").astype("int32")


def requantize(
    total: np.ndarray, scale: np.ndarray | np.float32, zero_point: int, clamp: Pair = FULL_RANGE
) -> np.ndarray:
    """``clip(sat8(rne(f32(f32(total) * scale)) + zero_point), *clamp)``, as int64."""
    product = total.astype("float32") * np.asarray(scale, "float32")
    return _saturated(np.rint(product).astype("float64") + zero_point, clamp)


def _saturated(real: np.ndarray, clamp: Pair) -> np.ndarray:
    limited: np.ndarray = np.clip(np.clip(real, -128, 127), *clamp)
    return limited.astype("int64")


def _windows(x: np.ndarray, layer: Conv | Pool, kernel: Pair, dilations: Pair) -> np.ndarray:
    """(N, C, OH, OW, KH, KW) of an array that is padded already."""
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, extent, (2, 3))
    (rows, columns), (down, right) = layer.strides, dilations
    return windows[:, :, ::rows, ::columns, ::down, ::right]


def _padded(x: np.ndarray, pads: tuple[int, ...], value: int) -> np.ndarray:
    top, left, bottom, right = pads
    widths = ((0, 0), (0, 0), (top, bottom), (left, right))
    return np.pad(x, widths, constant_values=value)


def _conv(layer: Conv, xs: list[np.ndarray], specs: list[TensorSpec], net: Network) -> np.ndarray:
    weight = net.constants[layer.weight].astype("int64")
    centred = _padded(xs[0].astype("int64") - specs[0].zero_point, layer.pads, 0)
    windows = _windows(centred, layer, weight.shape[2:], layer.dilations)
    if layer.is_depthwise():
        total = np.einsum("nchwij,cij->nchw", windows, weight[:, 0])
    else:
        # In float64, sums of up to 2**37 products of bytes are exact, and BLAS makes them fast.
        n, _, rows, columns = windows.shape[:4]
        matrix = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * rows * columns, -1)
        flat = matrix.astype("float64") @ weight.reshape(len(weight), -1).T.astype("float64")
        total = flat.astype("int64").reshape(n, rows, columns, -1).transpose(0, 3, 1, 2)
    bias, scales = net.constants[layer.bias], net.constants[layer.scales]
    total = wrap_int32(total + bias[:, None, None])
    zero = net.tensors[layer.output].zero_point
    return requantize(total, scales[:, None, None], zero, layer.clamp)


def _matmul(
    layer: MatMul, xs: list[np.ndarray], specs: list[TensorSpec], net: Network
) -> np.ndarray:
    centred = xs[0].astype("float64") - specs[0].zero_point
    total = (centred @ net.constants[layer.weight].astype("float64")).astype("int64")
    total = wrap_int32(total + net.constants[layer.bias])
    zero = net.tensors[layer.output].zero_point
    return requantize(total, net.constants[layer.scales], zero, layer.clamp)


def _pool(layer: Pool, xs: list[np.ndarray], specs: list[TensorSpec], net: Network) -> np.ndarray:
    x, spec, y = xs[0].astype("int64"), specs[0], net.tensors[layer.output]
    if layer.kind == "max":
        windows = _windows(_padded(x, layer.pads, -128), layer, layer.kernel, (1, 1))
        return np.asarray(windows.max((-1, -2)))
    windows = _windows(_padded(x - spec.zero_point, layer.pads, 0), layer, layer.kernel, (1, 1))
    total = wrap_int32(windows.sum((-1, -2)))
    inside = _padded(np.ones_like(x[:1, :1]), layer.pads, int(layer.count_include_pad))
    counts = _windows(inside, layer, layer.kernel, (1, 1)).sum((-1, -2))
    scale = np.vectorize(lambda n: average_scale(spec, y, n), otypes=["float32"])(counts)
    return requantize(total, scale, y.zero_point)


def _add(layer: Add, xs: list[np.ndarray], specs: list[TensorSpec], net: Network) -> np.ndarray:
    a, b = (x.astype("int64") + layer.shift for x in xs)
    scale_a, scale_b = map(np.float32, layer.scales)
    inner = fused(b, scale_b, np.float32(layer.offset))
    return _saturated(np.rint(fused(a, scale_a, inner)) - layer.shift, layer.clamp)


def _multiply(
    layer: Multiply, xs: list[np.ndarray], specs: list[TensorSpec], net: Network
) -> np.ndarray:
    a, b = (x.astype("int64") - s.zero_point for x, s in zip(xs, specs, strict=True))
    zero = np.float32(net.tensors[layer.output].zero_point + layer.shift)
    real = fused(a * b, np.float32(layer.scale), zero)
    return _saturated(np.rint(real) - layer.shift, layer.clamp)


def _abs(layer: Abs, xs: list[np.ndarray], specs: list[TensorSpec], net: Network) -> np.ndarray:
    zero = specs[0].zero_point
    return _saturated(np.abs(xs[0].astype("int64") - zero) + zero, FULL_RANGE)


def _leaky_relu(
    layer: LeakyRelu, xs: list[np.ndarray], specs: list[TensorSpec], net: Network
) -> np.ndarray:
    centred = xs[0].astype("int64") - specs[0].zero_point
    scale = np.where(centred < 0, np.float32(layer.negative_scale), np.float32(layer.scale))
    return requantize(centred, scale, net.tensors[layer.output].zero_point)


def _requantize(
    layer: Requantize, xs: list[np.ndarray], specs: list[TensorSpec], net: Network
) -> np.ndarray:
    centred = xs[0].astype("int64") - specs[0].zero_point
    zero = net.tensors[layer.output].zero_point
    return requantize(centred, np.float32(layer.scale), zero, layer.clamp)


def _interleave(
    layer: Interleave, xs: list[np.ndarray], specs: list[TensorSpec], net: Network
) -> np.ndarray:
    rows, columns = layer.factors
    made = np.empty(net.tensors[layer.output].shape, "int8")
    for index, x in enumerate(xs):
        made[:, :, index // columns :: rows, index % columns :: columns] = x
    return made


_RULES: dict[type[Layer], Callable[[Any, list[np.ndarray], list[TensorSpec], Network], Any]] = {
    Conv: _conv,
    MatMul: _matmul,
    Pool: _pool,
    Add: _add,
    Multiply: _multiply,
    Minimum: lambda layer, xs, specs, net: np.minimum(*xs),
    Maximum: lambda layer, xs, specs, net: np.maximum(*xs),
    Abs: _abs,
    Relu: lambda layer, xs, specs, net: np.maximum(xs[0], specs[0].zero_point),
    LeakyRelu: _leaky_relu,
    Requantize: _requantize,
    Concat: lambda layer, xs, specs, net: np.concatenate(xs, 1),
    Interleave: _interleave,
    Reshape: lambda layer, xs, specs, net: xs[0].reshape(net.tensors[layer.output].shape),
}
