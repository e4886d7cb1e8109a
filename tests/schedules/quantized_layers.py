"""Layers of 8-bit integers: workloads, random constants, and NumPy's results in int64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tvm

from tests.schedules.kernels import HOST, Case, compiled, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.layout import from_blocked, to_blocked
from tvm_ext.schedules.quantized_workload import (
    QuantizedConvWorkload,
    QuantizedMatmulWorkload,
    QuantizedPoolWorkload,
    Requantization,
)
from tvm_ext.target import CpuTarget

V = HOST.lanes
LIMITS = {"uint8": (0, 255), "int8": (-128, 127)}


def conv(
    channels: int, spatial: tuple[int, int], filters: int, kernel: int, stride: int = 1,
    pad: int = 0, dilation: int = 1, batch: int = 1, groups: int = 1, dtype: str = "uint8",
) -> QuantizedConvWorkload:  # fmt: skip
    """A square convolution; zero points are odd numbers, and the clamp is inside the limits."""
    low, high = LIMITS[dtype]
    return QuantizedConvWorkload(
        batch, channels, spatial, filters, (kernel, kernel), (stride, stride), (pad, pad),
        (pad, pad), (dilation, dilation), low + 77, Requantization(low + 121, low + 3, high - 2),
        dtype, groups,
    )  # fmt: skip


def matmul(rows: int, depth: int, columns: int, dtype: str = "uint8") -> QuantizedMatmulWorkload:
    """A product."""
    low, high = LIMITS[dtype]
    result = Requantization(low + 121, low + 3, high - 2)
    return QuantizedMatmulWorkload(rows, depth, columns, low + 77, result, dtype)


def integers(shape: Sequence[int], dtype: str, seed: int = 0) -> np.ndarray:
    """Every 8-bit value equally often."""
    low, high = LIMITS[dtype]
    rng = np.random.default_rng(seed)
    return rng.integers(low, high + 1, shape).astype(dtype)


def product_constants(
    shape: Sequence[int], channels: int, depth: int, seed: int = 1, per_channel: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights of `shape`, a bias, and scales with which `depth` products fill most of the range."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, shape).astype("int8")
    bias = rng.integers(-3000, 3000, channels).astype("int32")
    scales = rng.uniform(0.5, 1.0, channels) * 50 / (np.sqrt(depth) * 74 * 74)
    scales = scales if per_channel else np.full(channels, scales[0])
    return weights, bias, scales.astype("float32")


def case(algorithm: str, w: Any, layout: tuple[int, int] = (V, V), **fields: Any) -> Case:
    """A random kernel call of a product; `per_channel` and `params` may be given."""
    per_channel = fields.pop("per_channel", True)
    if isinstance(w, QuantizedConvWorkload):
        shape = (w.out_channels, w.in_channels // w.groups, *w.kernel)
        channels, depth = w.out_channels, int(np.prod(shape[1:]))
        data = integers(w.in_shape, w.dtype)
    else:
        shape, channels, depth = (w.depth, w.columns), w.columns, w.depth
        data = integers((w.rows, w.depth), w.dtype)
    weights = product_constants(shape, channels, depth, per_channel=per_channel)
    # Lanes past the last channel of blocked inputs hold anything.
    return Case(
        algorithm, w, [data], weights, layout=layout, out_dtype=w.dtype, missing=99, **fields
    )


def expected(case: Case) -> np.ndarray:
    """What NumPy computes in int64, float32 where the definition has it."""
    w = case.workload
    weights, bias, scales = case.weights
    centred = case.data[0].astype("int64") - w.x_zero
    if isinstance(w, QuantizedMatmulWorkload):
        total = centred @ weights.astype("int64") + bias
        return requantized(total, scales, w.result, w.dtype)
    total = convolved(w, centred, weights.astype("int64")) + bias[:, None, None]
    return requantized(total, scales[:, None, None], w.result, w.dtype)


def convolved(w: QuantizedConvWorkload, centred: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sums over windows, tap by tap."""
    (top, left), (bottom, right) = w.pad_before, w.pad_after
    padded = np.pad(centred, [(0, 0), (0, 0), (top, bottom), (left, right)])
    rows, columns = w.out_spatial
    total = np.zeros(w.out_shape, "int64")
    for i in range(w.kernel[0]):
        for j in range(w.kernel[1]):
            part = padded[:, :, i * w.dilation[0] :, j * w.dilation[1] :]
            part = part[:, :, :: w.strides[0], :: w.strides[1]][:, :, :rows, :columns]
            if w.groups > 1:
                total += part * weights[:, 0, i, j][:, None, None]
            else:
                total += np.einsum("nchw,oc->nohw", part, weights[:, :, i, j])
    return total


def requantized(total: np.ndarray, scale: Any, result: Requantization, dtype: str) -> np.ndarray:
    """The definition, step by step."""
    product = total.astype("float32") * np.asarray(scale, "float32")
    whole = np.rint(product).astype("float64") + result.zero
    return np.clip(whole, result.low, result.high).astype(dtype)


def assert_same_bits(cases: Sequence[Case]) -> None:
    """Every result is NumPy's, and hardly any is saturated."""
    for given, found in zip(cases, run_all(cases), strict=True):
        wanted = expected(given)
        assert len(np.unique(wanted)) > min(60, wanted.size // 4), given.workload
        np.testing.assert_array_equal(found, wanted, err_msg=str(given.workload))


def inner_loop(text: str, product: str) -> tuple[int, dict[str, int]]:
    """Of the loop with the most of an instruction to other ones: how many, and the others."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    labels = {line[:-1]: i for i, line in enumerate(lines) if line.endswith(":")}
    best: tuple[float, int, dict[str, int]] = (0.0, 0, {})
    for i, line in enumerate(lines):
        target = line.split()[-1]
        if not line.startswith("j") or labels.get(target, i) >= i:
            continue
        body = [x.split()[0] for x in lines[labels[target] : i + 1] if x[0] != "." and x[-1] != ":"]
        count = body.count(product)
        others = {x: body.count(x) for x in set(body) - {product}}
        best = max(best, (count / len(body), count, others), key=lambda found: found[0])
    return best[1], best[2]


def run_on(target: CpuTarget, given: Case) -> np.ndarray:
    """The result of code for another target that this machine can run."""
    w, algorithm = given.workload, algorithms()[given.algorithm]
    block_in, block_out = given.layout
    out = tvm.runtime.tensor(to_blocked(np.zeros(w.out_shape, w.dtype), block_out))
    arrays = [to_blocked(given.data[0], block_in)]
    arrays += algorithm.pack(w, algorithm.default(w, target), target, given.weights)
    compiled([given], target)["kernel0"](*map(tvm.runtime.tensor, arrays), out)
    stored = out.numpy()
    return from_blocked(stored, w.out_shape[1]) if block_out else stored


def pool(kind: str, shape: tuple[int, ...], kernel: int, stride: int = 1, pad: int = 0,
         dtype: str = "uint8") -> QuantizedPoolWorkload:  # fmt: skip
    """A square max pool, or a global average."""
    low, high = LIMITS[dtype]
    w = QuantizedPoolWorkload(
        kind, shape, (kernel, kernel), (stride, stride), (pad, pad), (pad, pad), dtype
    )
    if kind == "max":
        return w
    scale = float(np.float32(1.7 / np.prod(shape[2:])))
    result = Requantization(low + 40, low, high)
    return replace(w, kernel=shape[2:], x_zero=low + 77, scale=scale, result=result)
