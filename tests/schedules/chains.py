"""Chains of scalar operations as elementwise workloads, and their meaning in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf

import numpy as np

from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.workload import ElementwiseWorkload

SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]


def chain(
    shape: tuple[int, ...], steps: Sequence[Step], operands: Sequence[Operand],
    dtype: str = "float32",
) -> ElementwiseWorkload:  # fmt: skip
    """An elementwise workload of these steps."""
    return ElementwiseWorkload(shape, dtype, Epilogue(tuple(steps), tuple(operands), results=0))


def unary(op: str, shape: tuple[int, ...], attrs: tuple[float, ...] = ()) -> ElementwiseWorkload:
    """One operation on one float32 tensor."""
    return chain(shape, [Step(op, (("operand", 0),), attrs)], [Operand(shape, "float32")])


def binary(
    op: str, dtype: str, out: str | None = None, shape: tuple[int, ...] = (37,)
) -> ElementwiseWorkload:
    """One operation on two tensors of the same shape and type."""
    step = Step(op, (("operand", 0), ("operand", 1)), dtype=out or dtype)
    return chain(shape, [step], [Operand(shape, dtype)] * 2, out or dtype)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal values, float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


# name: attributes of the step
ATTRIBUTES = {"clip": (-1.5, 2.5), "leakyrelu": (0.1,), "celu": (2.0,)}

UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "negative": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "tanh": np.tanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(erf),
    "relu": lambda x: np.where(x < 0, 0, x),
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "celu": lambda x: np.where(x < 0, 2 * np.expm1(x / 2), x),
    "selu": lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423 * np.expm1(x), x),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "softsign": lambda x: x / (1 + abs(x)),
    "hardsigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "gelu": lambda x: x / 2 * (1 + np.vectorize(erf)(x / np.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "leakyrelu": lambda x: np.where(x < 0, 0.1 * x, x),
    "clip": lambda x: np.clip(x, -1.5, 2.5),
}  # fmt: skip
"""What every operation of one argument computes, with `ATTRIBUTES`."""
