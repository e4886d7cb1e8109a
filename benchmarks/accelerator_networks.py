"""Quantised networks of known shapes with random weights, as the accelerator's `Network`.

Cycles depend on shapes alone, so the weights needn't be trained. Scales are chosen so that
activations spread over int8 instead of saturating.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.arithmetic import add_registers
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_elementwise import Add
from tvm_ext.codegen.network_layers import Conv, Layer, MatMul, Pair, TensorSpec, window_shape
from tvm_ext.codegen.network_moves import Reshape
from tvm_ext.codegen.network_pool import Pool

_STEP = 0.05
"""Scale of every activation."""


class NetworkBuilder:
    """Appends layers to a network; each method returns the name of the tensor that it makes."""

    def __init__(self, name: str, shape: tuple[int, ...], seed: int = 0) -> None:
        self._name, self._rng = name, np.random.default_rng(seed)
        self._tensors: dict[str, TensorSpec] = {}
        self._layers: list[Layer] = []
        self._constants: dict[str, np.ndarray] = {}
        self.input = self._tensor("input", shape)

    def network(self, output: str) -> Network:
        """What has been built."""
        return Network(
            self._name, (self.input,), (output,), self._tensors, tuple(self._layers),
            self._constants,
        )  # fmt: skip

    def conv(
        self, source: str, filters: int, kernel: int, stride: int = 1, *, depthwise: bool = False,
        relu: bool = True,
    ) -> str:  # fmt: skip
        """Convolution with padding of half a kernel; `filters` is what comes in if depthwise."""
        _, channels, *size = self._tensors[source].shape
        pads = (kernel // 2,) * 4
        rows, columns = window_shape(
            (size[0], size[1]), (kernel, kernel), (stride, stride), (1, 1), pads
        )
        fan_in = 1 if depthwise else channels
        name = self._next()
        names = self._weights(name, (filters, fan_in, kernel, kernel), filters)
        output = self._tensor(name, (1, filters, rows, columns))
        self._layers.append(
            Conv(
                name=name, inputs=(source,), output=output, weight=names[0], bias=names[1],
                scales=names[2], strides=(stride, stride), pads=pads,
                groups=channels if depthwise else 1, clamp=self._clamp(relu),
            )
        )  # fmt: skip
        return output

    def matmul(self, source: str, columns: int) -> str:
        """Product of a flattened tensor."""
        depth = int(np.prod(self._tensors[source].shape))
        flat = self._tensor(self._next(), (1, depth))
        self._layers.append(Reshape(name=flat, inputs=(source,), output=flat))
        name = self._next()
        names = self._weights(name, (depth, columns), columns)
        output = self._tensor(name, (1, columns))
        self._layers.append(
            MatMul(
                name=name, inputs=(flat,), output=output, weight=names[0], bias=names[1],
                scales=names[2],
            )
        )  # fmt: skip
        return output

    def add(self, first: str, second: str) -> str:
        """Sum, then ReLU."""
        name = self._next()
        output = self._tensor(name, self._tensors[first].shape)
        specs = self._tensors[first], self._tensors[second], self._tensors[output]
        scales, offset = add_registers(*specs)
        self._layers.append(
            Add(
                name=name, inputs=(first, second), output=output, scales=scales, offset=offset,
                clamp=self._clamp(True),
            )
        )  # fmt: skip
        return output

    def pool(self, source: str, kind: str, kernel: int = 0, stride: int = 1, pad: int = 0) -> str:
        """Pooling; a kernel of 0 is the whole image."""
        _, channels, rows, columns = self._tensors[source].shape
        window: Pair = (kernel, kernel) if kernel else (rows, columns)
        pads = (pad,) * 4
        size = window_shape((rows, columns), window, (stride, stride), (1, 1), pads)
        name = self._next()
        output = self._tensor(name, (1, channels, *size))
        self._layers.append(
            Pool(
                name=name, inputs=(source,), output=output, kind=kind, kernel=window,
                strides=(stride, stride), pads=pads,
            )
        )  # fmt: skip
        return output

    def _next(self) -> str:
        return f"layer{len(self._layers)}"

    def _tensor(self, name: str, shape: tuple[int, ...]) -> str:
        self._tensors[name] = TensorSpec(name, shape, "int8", float(np.float32(_STEP)), -5)
        return name

    def _clamp(self, relu: bool) -> Pair:
        return (-5, 127) if relu else (-128, 127)

    def _weights(self, name: str, shape: tuple[int, ...], filters: int) -> tuple[str, str, str]:
        names = (f"{name}.weight", f"{name}.bias", f"{name}.scales")
        depth = int(np.prod(shape)) // filters
        # Weights spread by 58, and ReLU takes half of the variance: what comes out spreads nearly
        # as widely as what went in.
        scale = 1.35 / (58 * np.sqrt(depth))
        self._constants |= {
            names[0]: self._rng.integers(-100, 101, shape).astype("int8"),
            names[1]: self._rng.integers(-2000, 2001, filters).astype("int32"),
            names[2]: (scale * self._rng.uniform(0.8, 1.2, filters)).astype("float32"),
        }
        return names


def mobilenet_v1(size: int = 224, width: float = 1.0, classes: int = 1000) -> Network:
    """MobileNetV1 (Howard et al., 2017): 13 pairs of a depthwise and a 1x1 convolution."""
    builder = NetworkBuilder("mobilenet_v1", (1, 3, size, size))

    def scaled(channels: int) -> int:
        return max(1, int(channels * width))

    x, channels = builder.conv(builder.input, scaled(32), 3, 2), scaled(32)
    pairs = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5,
             (1024, 2), (1024, 1)]  # fmt: skip
    for filters, stride in pairs:
        x = builder.conv(x, channels, 3, stride, depthwise=True)
        x = builder.conv(x, scaled(filters), 1)
        channels = scaled(filters)
    return builder.network(builder.matmul(builder.pool(x, "global_average"), classes))


def mobilenet_v1_without_depthwise(size: int = 224) -> list[Network]:
    """What of MobileNetV1 an accelerator without depthwise convolutions gets: the layers between
    them, each a network of its own.
    """
    full = mobilenet_v1(size)
    parts: list[Network] = []
    group: list[Layer] = []
    for layer in full.layers:
        if isinstance(layer, Conv) and layer.is_depthwise():
            parts.append(part(full, group))
            group = []
        else:
            group.append(layer)
    return [*parts, part(full, group)]


def part(full: Network, layers: Sequence[Layer]) -> Network:
    """Layers that follow each other, as a network of their own."""
    names = [layers[0].inputs[0], *(layer.output for layer in layers)]
    constants = {name for layer in layers for name in layer.constant_names()}
    return Network(
        layers[0].name, (names[0],), (names[-1],), {name: full.tensors[name] for name in names},
        tuple(layers), {name: full.constants[name] for name in constants},
    )  # fmt: skip


def resnet18(size: int = 224, classes: int = 1000) -> Network:
    """ResNet-18 (He et al., 2015): a stem and eight blocks of two 3x3 convolutions and a sum."""
    builder = NetworkBuilder("resnet18", (1, 3, size, size))
    x = builder.pool(builder.conv(builder.input, 64, 7, 2), "max", 3, 2, 1)
    channels = 64
    for filters, stride in [(64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                            (512, 1)]:  # fmt: skip
        left = builder.conv(builder.conv(x, filters, 3, stride), filters, 3, relu=False)
        changes = stride > 1 or filters != channels
        right = builder.conv(x, filters, 1, stride, relu=False) if changes else x
        x, channels = builder.add(left, right), filters
    return builder.network(builder.matmul(builder.pool(x, "global_average"), classes))
