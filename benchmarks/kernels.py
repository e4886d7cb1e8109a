"""Single kernels: compiled alone, run on random data, checked and timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm

from tvm_ext.schedules import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.layout import from_blocked, stored_shape, to_blocked
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.target import CpuTarget


@dataclass
class Kernel:
    """A compiled kernel with its arguments in place.

    Attributes
    ----------
    name : str
        The algorithm.
    workload : object
    module : tvm.runtime.Module
    tensors : list of Tensor
        Data, packed weights, output.
    error : float
        Largest difference from float64 over the largest magnitude.
    """

    name: str
    workload: Any
    module: Any
    tensors: list[Any]
    error: float

    def seconds(self, repeats: int) -> np.ndarray:
        """Times of single runs."""
        timer = self.module.time_evaluator("main", tvm.cpu(), number=1, repeat=repeats)
        return np.asarray(timer(*self.tensors).results)


def conv_kernel(
    name: str, workload: ConvWorkload, target: CpuTarget, weights: np.ndarray | None = None
) -> Kernel:
    """Compile an algorithm's default kernel for a convolution and check it on random data.

    Without `weights`, of the workload's shape, they are random, too.
    """
    algorithm = algorithms()[name]
    support = algorithm.supports(workload, target)
    if not support:
        raise ValueError(f"{name}: {support.reason}")
    params = algorithm.default(workload, target)
    layout = algorithm.layouts(workload, target)[0]
    rng = np.random.default_rng(0)
    x = rng.standard_normal(workload.in_shape).astype("float32")
    w = random_weights(workload, rng) if weights is None else weights
    packed = algorithm.pack(workload, params, target, [w])
    function = algorithm.kernel(workload, params, target, layout)
    out = np.zeros(stored_shape(workload.out_shape, layout[1]), "float32")
    kernel = _compiled(name, workload, function, target, [to_blocked(x, layout[0]), *packed, out])
    result = kernel.tensors[-1].numpy()
    if layout[1]:
        result = from_blocked(result, workload.out_channels)
    kernel.error = _error(result, _convolve(workload, x, w))
    return kernel


def random_weights(workload: ConvWorkload, rng: np.random.Generator) -> np.ndarray:
    """Weights for which inputs of variance 1 give outputs of variance 1."""
    per_group = workload.in_channels // workload.groups
    shape = (workload.out_channels, per_group, *workload.kernel)
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32")


def matmul_kernel(name: str, workload: MatmulWorkload, target: CpuTarget) -> Kernel:
    """Compile an algorithm's default kernel for a constant right side and check it."""
    algorithm = algorithms()[name]
    params = algorithm.default(workload, target)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((workload.m, workload.k)).astype("float32")
    b = rng.standard_normal((workload.k, workload.n)).astype("float32")
    packed = algorithm.pack(workload, params, target, [b])
    function = algorithm.kernel(workload, params, target, (0, 0))
    out = np.zeros((workload.m, workload.n), "float32")
    kernel = _compiled(name, workload, function, target, [a, *packed, out])
    kernel.error = _error(kernel.tensors[-1].numpy(), a.astype("f8") @ b)
    return kernel


def _compiled(
    name: str, workload: Any, function: Any, target: CpuTarget, arrays: list[np.ndarray]
) -> Kernel:
    module = tvm.compile(tvm.IRModule({"main": function}), target=target.tvm).mod
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    module["main"](*tensors)
    return Kernel(name, workload, module, tensors, float("nan"))


def _convolve(workload: ConvWorkload, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Two-dimensional grouped convolution in float64, one tap at a time."""
    (top, left), (bottom, right) = workload.pad_before, workload.pad_after
    x = np.pad(x.astype("f8"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    n, c, *_ = x.shape
    g, k = workload.groups, workload.out_channels
    height, width = workload.out_spatial
    y = np.zeros((n, g, k // g, height, width))
    xg = x.reshape(n, g, c // g, *x.shape[2:])
    wg = w.astype("f8").reshape(g, k // g, c // g, *workload.kernel)
    (sy, sx), (dy, dx) = workload.strides, workload.dilation
    for i in range(workload.kernel[0]):
        for j in range(workload.kernel[1]):
            rows = slice(i * dy, i * dy + sy * (height - 1) + 1, sy)
            columns = slice(j * dx, j * dx + sx * (width - 1) + 1, sx)
            y += np.einsum("gkc,ngchw->ngkhw", wg[..., i, j], xg[..., rows, columns], optimize=True)
    return y.reshape(n, k, height, width)


def _error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / np.abs(expected).max())
