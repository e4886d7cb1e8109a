"""A parsed compute DAG as TE computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import te, tirx

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
    Placeholder,
    Unary,
)
from tvm_ext.transfer.ansor.dag_extents import Extents
from tvm_ext.transfer.ansor.dag_functions import FUNCTIONS

_REDUCERS = {"sum": te.sum, "max": te.max, "min": te.min}


def dag_tensors(
    dag: DagText,
    shapes: Sequence[Sequence[int]],
    extents: Extents,
    dtypes: Mapping[str, str],
) -> dict[str, te.Tensor]:
    """The tensors of all stages by name, in order.

    Parameters
    ----------
    dag : DagText
    shapes : sequence of shapes
        Of the placeholders, in order.
    extents : Extents
        Of all axes, from `infer_extents`.
    dtypes : Mapping[str, str]
        Of placeholders by name; float32 for one that isn't there.
    """
    tensors: dict[str, te.Tensor] = {}
    inputs = iter(shapes)
    for stage in dag.stages:
        if isinstance(stage, Placeholder):
            dtype = dtypes.get(stage.name, "float32")
            tensors[stage.name] = te.placeholder(tuple(next(inputs)), dtype, name=stage.name)
        else:
            tensors[stage.name] = _compute(stage, extents[stage.name], tensors)
    return tensors


def _compute(
    stage: Compute, extents: Mapping[str, int], tensors: Mapping[str, te.Tensor]
) -> te.Tensor:
    reductions = {axis: te.reduce_axis((0, extents[axis]), axis) for axis in stage.reduce_axes}

    def body(*spatial: tirx.Var) -> Any:
        axes = {**dict(zip(stage.axes, spatial, strict=True)), **reductions}
        value = _lower(stage.body, axes, tensors)
        if stage.combiner is None:
            return value
        return _REDUCERS[stage.combiner](value, axis=list(reductions.values()))

    shape = tuple([extents[axis] for axis in stage.axes])
    return te.compute(shape, body, name=stage.name)


def _lower(
    expression: Expression, axes: Mapping[str, Any], tensors: Mapping[str, te.Tensor]
) -> Any:
    """The expression as TVM's."""

    def lower(part: Expression) -> Any:
        return _lower(part, axes, tensors)

    match expression:
        case Number(value, dtype):
            return tirx.const(value, dtype)
        case Axis(name):
            axis = axes[name]
            return axis.var if isinstance(axis, tirx.IterVar) else axis
        case Access(stage, indices):
            return tensors[stage](*map(lower, indices))
        case Call(function, arguments):
            return FUNCTIONS[function].tir(*map(lower, arguments))
        case Cast(dtype, operand):
            return lower(operand).astype(dtype)
        case Unary(operator, operand):
            return -lower(operand) if operator == "-" else tirx.Not(lower(operand))
        case Binary(operator, left, right):
            return _binary(operator, lower(left), lower(right))


def _binary(operator: str, a: Any, b: Any) -> Any:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            # Between integers the text's / and % round towards zero.
            return a / b if "float" in str(a.ty.dtype) else tirx.truncdiv(a, b)
        case "%":
            return tirx.truncmod(a, b)
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case "==":
            return tirx.EQ(a, b)
        case "!=":
            return tirx.NE(a, b)
        case "&&":
            return tirx.And(a, b)
        case _:
            return tirx.Or(a, b)
