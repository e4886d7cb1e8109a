"""Plain float64 NumPy meanings of the workloads, and random inputs for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tests.schedules.kernels import HOST, Case, run_all
from tvm_ext.schedules.conv_workload import ConvTransposeWorkload, ConvWorkload
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.workload import PoolWorkload
from tvm_ext.target import CpuTarget


def conv_workload(
    channels: int,
    spatial: tuple[int, ...],
    outputs: int,
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...] = 1,
    pad: int | tuple[int, ...] = 0,
    *,
    groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
    batch: int = 1,
) -> ConvWorkload:
    """A convolution; one number of a window is the same in every dimension."""

    def every(x: int | tuple[int, ...]) -> tuple[int, ...]:
        return (x,) * len(spatial) if isinstance(x, int) else x

    return ConvWorkload(
        batch, channels, spatial, outputs, every(kernel), every(stride), every(pad), every(pad),
        every(dilation), groups,
    )  # fmt: skip


def with_residual(w: Any) -> Any:
    """The workload with an epilogue: relu(result + bias + residual)."""
    ones = (1,) * (len(w.out_shape) - 2)
    bias = Operand((1, w.out_shape[1], *ones), "float32")
    return replace(w, epilogue=residual_epilogue(bias, w.out_shape))


def residual_epilogue(bias: Operand, out_shape: tuple[int, ...]) -> Epilogue:
    """relu(result + bias + residual)."""
    steps = (
        Step("add", (("value", 0), ("operand", 0))),
        Step("add", (("value", 1), ("operand", 1))),
        Step("relu", (("value", 2),)),
    )
    return Epilogue(steps, (bias, Operand(tuple(out_shape), "float32")))


def random(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Normal values, float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def operands_of(w: Any, seed: int = 7) -> list[np.ndarray]:
    """Values for the epilogue's operands."""
    return [random(o.shape, seed + i) for i, o in enumerate(w.epilogue.operands)]


def finished(result: np.ndarray, w: Any, operands: list[np.ndarray]) -> np.ndarray:
    """`result` after `residual_epilogue`, if the workload has one."""
    if not w.epilogue.steps:
        return result
    return np.maximum(result + sum(x.astype("float64") for x in operands), 0)


def conv(w: ConvWorkload, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Cross-correlation, tap by tap."""
    pads = [(0, 0), (0, 0), *zip(w.pad_before, w.pad_after, strict=True)]
    padded = np.pad(data.astype("float64"), pads)
    inputs, outputs = w.in_channels // w.groups, w.out_channels // w.groups
    padded = padded.reshape(w.batch, w.groups, inputs, *padded.shape[2:])
    kernel = weight.astype("float64").reshape(w.groups, outputs, inputs, *w.kernel)
    out = np.zeros((w.batch, w.groups, outputs, *w.conv_spatial))
    for tap in product(*map(range, w.kernel)):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, w.dilation, w.conv_spatial, w.strides, strict=True)
        )
        part = padded[(slice(None), slice(None), slice(None), *window)]
        out += np.einsum("goi,bgi...->bgo...", kernel[(..., *tap)], part)
    return out.reshape(w.conv_shape)


def conv_transpose(w: ConvTransposeWorkload, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Every input adds to the outputs under its taps; then the padding is cut off."""
    inputs, outputs = w.in_channels // w.groups, w.out_channels // w.groups
    kernel = weight.astype("float64").reshape(w.groups, inputs, outputs, *w.kernel)
    x = data.astype("float64").reshape(w.batch, w.groups, inputs, *w.spatial)
    full = tuple(
        o + before + after + s * d * k
        for o, before, after, s, d, k in zip(
            w.out_spatial, w.pad_before, w.pad_after, w.strides, w.dilation, w.kernel, strict=True
        )
    )
    out = np.zeros((w.batch, w.groups, outputs, *full))
    for tap in product(*map(range, w.kernel)):
        window = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, w.dilation, w.spatial, w.strides, strict=True)
        )
        out[(slice(None), slice(None), slice(None), *window)] += np.einsum(
            "gio,bgi...->bgo...", kernel[(..., *tap)], x
        )
    cut = tuple(slice(b, b + o) for b, o in zip(w.pad_before, w.out_spatial, strict=True))
    return out[(slice(None), slice(None), slice(None), *cut)].reshape(w.out_shape)


def pool(w: PoolWorkload, data: np.ndarray) -> np.ndarray:
    """One window at a time, in float64."""
    out = np.empty(w.out_shape)
    for at in product(*(range(n) for n in w.out_shape[2:])):
        inside: list[list[int]] = []
        count = 1
        for axis, position in enumerate(at):
            origin = position * w.strides[axis] - w.pad_before[axis]
            taps = [origin + t * w.dilation[axis] for t in range(w.kernel[axis])]
            size = w.shape[2 + axis]
            inside.append([x for x in taps if 0 <= x < size])
            count *= sum(
                -w.pad_before[axis] <= x < size + w.pad_after[axis] for x in taps
            ) if w.count_include_pad else len(inside[-1])  # fmt: skip
        window = data.astype("float64")[(slice(None), slice(None), *np.ix_(*inside))]
        axes = tuple(range(2, data.ndim))
        result = window.max(axes) if w.kind == "max" else window.sum(axes) / max(count, 1)
        out[(slice(None), slice(None), *at)] = result
    return out


def agree(
    cases: Mapping[object, tuple[Case, np.ndarray]], tolerance: float, target: CpuTarget = HOST
) -> None:
    """Assert that each case comes within `tolerance` of the largest value that is expected."""
    results = run_all([case for case, _ in cases.values()], target)
    for name, actual, (_, expected) in zip(cases, results, cases.values(), strict=True):
        assert actual.shape == expected.shape, name
        error = np.abs(actual - expected).max() / np.abs(expected).max()
        assert error < tolerance, f"{name}: error {error:.1e}"
