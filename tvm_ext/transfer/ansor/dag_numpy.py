"""A parsed compute DAG worked out by numpy: what its schedules have to compute."""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_ext.transfer.ansor.dag_ast import (
    Access,
    Axis,
    Binary,
    Call,
    Cast,
    Compute,
    DagText,
    Expression,
    Number,
    Unary,
)
from tvm_ext.transfer.ansor.dag_extents import Extents
from tvm_ext.transfer.ansor.dag_functions import FUNCTIONS

_REDUCERS: dict[str, Callable[..., np.ndarray]] = {"sum": np.sum, "max": np.max, "min": np.min}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": op.add, "-": op.sub, "*": op.mul, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge,
    "==": op.eq, "!=": op.ne, "&&": np.logical_and, "||": np.logical_or, "%": np.fmod,
}  # fmt: skip


def evaluate_dag(
    dag: DagText, extents: Extents, inputs: Sequence[np.ndarray]
) -> tuple[np.ndarray, ...]:
    """The outputs for these inputs; floats are worked out in float64.

    Parameters
    ----------
    dag : DagText
    extents : Extents
        Of all axes, from `infer_extents`.
    inputs : sequence of ndarray
        Of the placeholders, in order.
    """
    values = {
        stage.name: array.astype("float64") if array.dtype.kind == "f" else array
        for stage, array in zip(dag.placeholders, inputs, strict=True)
    }
    for stage in dag.computes:
        values[stage.name] = _stage(stage, extents[stage.name], values)
    return tuple([values[stage.name] for stage in dag.outputs])


def _stage(
    stage: Compute, extents: Mapping[str, int], values: Mapping[str, np.ndarray]
) -> np.ndarray:
    names = (*stage.axes, *stage.reduce_axes)
    shape = tuple([extents[name] for name in names])
    rank = len(names)
    grid = {
        name: np.arange(extents[name]).reshape([-1 if i == k else 1 for i in range(rank)])
        for k, name in enumerate(names)
    }
    spatial = len(stage.axes)
    match stage:
        case Compute(combiner="sum", body=Binary("*", left, right)):
            # As a contraction, since all products together may not fit in memory.
            factors = [np.asarray(_value(part, grid, values)) for part in (left, right)]
            return _contracted(factors, shape, spatial)
    value = np.broadcast_to(np.asarray(_value(stage.body, grid, values)), shape)
    if stage.combiner is None:
        return np.ascontiguousarray(value)
    return _REDUCERS[stage.combiner](value, axis=tuple(range(spatial, rank)))


def _contracted(factors: list[np.ndarray], shape: tuple[int, ...], spatial: int) -> np.ndarray:
    """The sum of the product over the axes from `spatial` on."""
    rank = len(shape)
    operands: list[Any] = []
    for factor in factors:
        full = factor.reshape((1,) * (rank - factor.ndim) + factor.shape)
        kept = [i for i in range(rank) if full.shape[i] > 1]
        operands += [full.reshape([full.shape[i] for i in kept]), kept]
    # An axis that neither factor has repeats every product.
    present = set(operands[1]) | set(operands[3])
    repeats = np.prod([shape[i] for i in range(spatial, rank) if i not in present])
    out = [i for i in range(spatial) if i in present]
    total = np.einsum(*operands, out, optimize=True) * repeats
    expanded = total.reshape([shape[i] if i in present else 1 for i in range(spatial)])
    return np.ascontiguousarray(np.broadcast_to(expanded, shape[:spatial]))


def _value(
    expression: Expression, grid: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]
) -> Any:
    """The expression at all points, of as many dimensions as the axes; it broadcasts."""

    def value(part: Expression) -> Any:
        return _value(part, grid, values)

    match expression:
        case Number(number, dtype):
            return np.float64(number) if dtype.startswith("float") else int(number)
        case Axis(name):
            return grid[name]
        case Access(stage, indices):
            source = values[stage]
            # A guard keeps an index outside from being used; here all are read, so clip them.
            inside = [
                np.clip(value(index), 0, size - 1)
                for index, size in zip(indices, source.shape, strict=True)
            ]
            return source[tuple(inside)]
        case Call(function, arguments):
            return FUNCTIONS[function].numpy(*map(value, arguments))
        case Cast(dtype, operand):
            inner = np.asarray(value(operand))
            return inner.astype("float64" if dtype.startswith("float") else dtype)
        case Unary(operator, operand):
            return -value(operand) if operator == "-" else np.logical_not(value(operand))
        case Binary("/", left, right):
            a, b = np.asarray(value(left)), np.asarray(value(right))
            whole = a.dtype.kind in "iu" and b.dtype.kind in "iu"
            return np.trunc(a / b).astype(np.int64) if whole else a / b
        case Binary(operator, left, right):
            return _OPERATORS[operator](value(left), value(right))
