"""Weights, biases and factors as the accelerator's tiles read them, in one block of bytes."""

from __future__ import annotations

import numpy as np

from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.lowering.nest import PADDING_BLOB, Nest, Span, Tiling, spans
from tvm_ext.codegen.lowering.sram import aligned
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_layers import Conv, MatMul

_INT32 = 2**31 - 1


class Parameters:
    """The constants of one layer, in the accelerator's order.

    Parameters
    ----------
    network : Network
    layer : Conv or MatMul
    order : (channels, rows, pixels), optional
        The layer is a product of a flattened image that is still in the order (rows, pixels,
        channels).

    Attributes
    ----------
    weights : ndarray of int8
        (result channels, taps, input channels).
    bias : ndarray of int32
        (result channels,), with the input's zero point: ``bias - zx * sum(weights)``, wrapping as
        the sums do.
    scales : ndarray of float32
        (result channels,).
    zero : int
        The input's zero point: the value of padding.

    Raises
    ------
    LoweringError
        A sum can leave the int32 range.
    """

    def __init__(
        self, network: Network, layer: Conv | MatMul, order: tuple[int, int, int] | None = None
    ) -> None:
        weight = network.constants[layer.weight]
        if isinstance(layer, Conv):
            taps = weight.shape[2] * weight.shape[3]
            self.weights = weight.reshape(*weight.shape[:2], taps).transpose(0, 2, 1)
        else:
            self.weights = weight.T[:, np.newaxis]
            if order is not None:
                images = self.weights.reshape(-1, *order).transpose(0, 2, 3, 1)
                self.weights = images.reshape(self.weights.shape)
        zero = self.zero = network.tensors[layer.inputs[0]].zero_point
        bias = network.constants[layer.bias].astype(np.int64)
        wide = self.weights.astype(np.int32)
        self._check(layer.name, np.abs(wide).sum((1, 2)), zero, bias)
        folded = bias - zero * wide.sum((1, 2), dtype=np.int64)
        self.bias = folded.astype(np.uint32).view(np.int32)
        self.scales = network.constants[layer.scales]

    @staticmethod
    def _check(layer: str, magnitudes: np.ndarray, zero: int, bias: np.ndarray) -> None:
        reach = max(127 - zero, zero + 128)
        largest = int((magnitudes.astype(np.int64) * reach + np.abs(bias)).max())
        if largest > _INT32:
            raise LoweringError(
                f"layer {layer}: its sums can reach {largest}; allowed: int32, up to {_INT32}"
            )

    def blob(self, nest: Nest, channels: Span, depth: Span) -> bytes:
        """What a tile loads: biases with the first part of a sum, factors with the last, and
        weights [channel][tap][input channel].
        """
        rows = slice(channels.start, channels.start + channels.count)
        columns = slice(depth.start, depth.start + depth.count)
        parts = []
        if nest.bias_bytes and depth.start == 0:
            parts.append(self.bias[rows].astype("<i4").tobytes())
        if nest.scale_bytes and columns.stop == nest.depth:
            parts.append(self.scales[rows].astype("<f4").tobytes())
        if nest.taps_bytes:
            parts.append(self.weights[rows, :, columns].tobytes())
        return b"".join(parts)


class ConstantBlock:
    """The constants of a program, from system memory's address 0 on; equal ones are there once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._addresses: dict[bytes, int] = {}
        self.nbytes = 0

    def add(self, data: bytes) -> int:
        """The address of these bytes."""
        if data not in self._addresses:
            self._addresses[data] = self.nbytes
            size = aligned(len(data))
            self._parts.append(data.ljust(size, b"\0"))
            self.nbytes += size
        return self._addresses[data]

    def add_nest(
        self, nest: Nest, tiling: Tiling, parameters: Parameters
    ) -> dict[tuple[int, int], int]:
        """Addresses of a nest's tiles, by the indices of channels and depth; and of padding."""
        addresses = {
            (channels.index, depth.index): self.add(parameters.blob(nest, channels, depth))
            for channels in spans(nest.output.shape[2], tiling.channels)
            for depth in spans(nest.depth, tiling.depth)
        }
        if nest.fold:
            pixels = max(nest.fold.left, nest.fold.right)
            padding = np.full(pixels * nest.fold.channels, parameters.zero, np.int8)
            addresses[PADDING_BLOB] = self.add(padding.tobytes())
        return addresses

    def to_bytes(self) -> bytes:
        """All of it."""
        return b"".join(self._parts)
