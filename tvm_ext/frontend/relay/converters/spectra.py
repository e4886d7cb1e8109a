"""Fourier transforms, as products with tables of sines and cosines."""

from __future__ import annotations

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, scalar, shape_of
from tvm_ext.frontend.relay.converters.moves import permute, reshape
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts("stft")
def convert_stft(call: OpCall) -> relax.Expr:
    """Convert (N, samples) to the spectra of its frames, (N, frequencies, frames, 2)."""
    data, window = call.tensor(0), call.tensor(1)
    if len(shape_of(data)) != 2:
        raise ModelError(f"the data has {len(shape_of(data))} dimensions; it must have 2")
    size, hop, length = (int(call.required(n)) for n in ("n_fft", "hop_length", "win_length"))
    batch, samples = shape_of(data)
    frames = (samples - size) // hop + 1
    if frames < 1:
        raise ModelError(f"n_fft is {size}; there are {samples} samples")
    index = np.arange(frames)[:, None] * hop + np.arange(length)
    cut = call.emit(relax.op.take, data, const(index, "int64"), 1, mode="clip")
    cut = call.emit(relax.op.multiply, cut, call.cast(window, dtype_of(data)))
    rows = size // 2 + 1 if call.attr("onesided", True) else size
    angles = 2 * np.pi * np.outer(np.arange(length), np.arange(rows)) / length
    scale = size**-0.5 if call.attr("normalized", False) else 1.0
    table = np.stack([np.cos(angles), -np.sin(angles)], -1).reshape(length, rows * 2) * scale
    out = call.emit(relax.op.matmul, cut, const(table, dtype_of(data)))
    out = reshape(call.bb, out, (batch, frames, rows, 2))
    return permute(call.bb, out, (0, 2, 1, 3))


@converts("dft")
def convert_dft(call: OpCall) -> list[relax.Expr]:
    """Convert real and imaginary parts to those of the transform along the last dimension."""
    real, imaginary = call.tensor(0), call.tensor(1)
    size, dtype = shape_of(real)[-1], dtype_of(real)
    inverse = bool(call.attr("inverse", False))
    angles = 2 * np.pi * np.outer(np.arange(size), np.arange(size)) / size
    cosines = const(np.cos(angles), dtype)
    sines = const(np.sin(angles) * (1 if inverse else -1), dtype)

    def turned(a: relax.Expr, table: relax.Expr) -> relax.Expr:
        return call.emit(relax.op.matmul, a, table)

    parts = [
        call.emit(relax.op.subtract, turned(real, cosines), turned(imaginary, sines)),
        call.emit(relax.op.add, turned(real, sines), turned(imaginary, cosines)),
    ]
    if inverse:
        parts = [call.emit(relax.op.divide, part, scalar(size, part)) for part in parts]
    return parts
