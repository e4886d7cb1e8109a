"""Products beside norms and pools: their workloads, random arguments and float64 results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.schedules import oracles
from tests.schedules.kernels import TARGETS, Case, assembly, fma_lines, run_all
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.stages import stages
from tvm_ext.schedules.workload import NormalizeWorkload, PoolWorkload, Shape, kernel_operands
from tvm_ext.target import resolve

Stage = PoolWorkload | NormalizeWorkload | MatmulWorkload

AVX2 = resolve("llvm -mcpu=core-avx2")
TOLERANCE = 3e-6  # of the largest output; sums of a few hundred float32 products
EPSILON = 1e-5


def norm_workload(
    kind: str, shape: Shape, affine: bool = True, **fields: object
) -> NormalizeWorkload:
    """A norm of the rows of a tensor; an RMS norm has no beta."""
    rows = int(np.prod(shape[:-1]))
    shift = affine and kind == "layer_norm"
    return NormalizeWorkload(kind, rows, shape[-1], shape, EPSILON, affine, shift, **fields)


def product_workload(shape: Shape, n: int, **fields: object) -> MatmulWorkload:
    """A product of a tensor's rows with a constant matrix of n columns."""
    return MatmulWorkload.of(shape, (shape[-1], n), packed=True, **fields)


def residual(shape: Shape) -> Epilogue:
    """relu(result + bias + residual)."""
    return oracles.residual_epilogue(Operand(shape[-1:], "float32"), shape)


def modulation(shape: Shape) -> Epilogue:
    """tanh(result * vector)."""
    steps = (Step("multiply", (("value", 0), ("operand", 0))), Step("tanh", (("value", 1),)))
    return Epilogue(steps, (Operand(shape[-1:], "float32"),))


def case(name: str, w: Stage, **params: object) -> tuple[Case, np.ndarray]:
    """A workload with its producers on random numbers, and its result."""
    parts = stages(w)
    data = 3 * oracles.random(_source(parts[0]), 1) + 2
    weights = [_weights(part, 2 + 3 * i) for i, part in enumerate(reversed(parts))]
    operands = [oracles.random(o.shape, 9 + i) for i, o in enumerate(kernel_operands(w))]
    left, expected = list(operands), data.astype("float64")
    for part, own in zip(parts, reversed(weights), strict=True):
        count = len(part.epilogue.operands)
        expected, left = _computed(part, expected, own, left[:count]), left[count:]
    given = [x for own in weights for x in own]
    return Case(name, w, [data], given, operands, params=params), expected.reshape(w.out_shape)


def assert_special_values_stay(
    name: str, w: Stage, nan: tuple[int, ...], infinity: tuple[int, ...]
) -> None:
    """A NaN and an infinity at these positions of the data make their own rows NaN, no others."""
    plain, _ = case(name, w)
    (clean,) = run_all([plain])
    data = plain.data[0].copy()
    data[nan], data[infinity] = np.nan, np.inf
    (got,) = run_all([replace(plain, data=[data])])
    rows = [nan[0], infinity[0]]
    assert np.isnan(got[rows]).all()
    kept = np.delete(np.arange(len(got)), rows)
    assert kept.size
    np.testing.assert_array_equal(got[kept], clean[kept])


def assert_uses_vectors(
    name: str, w: Stage, target: str, more_than: int, in_blocks: bool = False
) -> None:
    """Multiply-adds in the target's registers, and none of them through the stack."""
    cpu = {**TARGETS, "avx2": AVX2}[target]
    layout = (cpu.lanes if in_blocks else 0, 0)
    lines = fma_lines(assembly(name, w, cpu, layout=layout))
    registers = {"avx512": "zmm", "avx2": "ymm", "neon": "fmla\tv"}
    assert sum(registers[target] in line for line in lines) > more_than
    assert not any("(%rsp)" in line or "[sp" in line for line in lines)


def _source(w: Stage) -> Shape:
    if isinstance(w, PoolWorkload):
        return w.shape
    return w.lhs_shape if isinstance(w, MatmulWorkload) else w.out_shape


def _weights(w: Stage, seed: int) -> list[np.ndarray]:
    if isinstance(w, PoolWorkload):
        return []
    if isinstance(w, MatmulWorkload):
        return [oracles.random(w.rhs_shape, seed) / 4]
    count = w.scale + w.shift
    return [oracles.random((w.columns,), seed + i) for i in range(count)]


def _computed(
    w: Stage, x: np.ndarray, weights: list[np.ndarray], operands: list[np.ndarray]
) -> np.ndarray:
    """One stage and its epilogue."""
    if isinstance(w, PoolWorkload):
        result = oracles.pool(w, x)
        return np.maximum(result, 0) if w.epilogue.steps else result
    if isinstance(w, MatmulWorkload):
        result = x.reshape(w.lhs.shape) @ weights[0].astype("float64")
    else:
        result = _normalized(w, x.reshape(w.out_shape), weights)
    if len(operands) == 2:
        return np.maximum(result + operands[0] + operands[1], 0)
    return np.tanh(result * operands[0]) if operands else result


def _normalized(w: NormalizeWorkload, x: np.ndarray, weights: list[np.ndarray]) -> np.ndarray:
    if "softmax" in w.kind:
        with np.errstate(invalid="ignore"):
            powers = np.exp(x - x.max(-1, keepdims=True))
        shares = powers / powers.sum(-1, keepdims=True)
        return shares if w.kind == "softmax" else np.log(shares)
    x = x - x.mean(-1, keepdims=True) if w.kind == "layer_norm" else x
    y = x / np.sqrt((x**2).mean(-1, keepdims=True) + w.epsilon)
    y = y * weights[0] if w.scale else y
    return y + weights[1] if w.shift else y
