"""How many floating-point operations a compute DAG has, as Ansor counts them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

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
    children,
)

_COUNTED = frozenset({"max", "min"})


def dag_flops(dag: DagText, extents: Mapping[str, Mapping[str, int]]) -> int:
    """Operations of all stages.

    Ansor counts arithmetic, comparisons, maxima and minima of floats, and one for each value that
    a reduction takes in; casts, selections and functions such as exp cost nothing.

    Parameters
    ----------
    dag : DagText
    extents : Mapping
        By stage, the extents of its axes, those of reductions too.
    """
    return sum(prod(extents[stage.name].values()) * _of_stage(stage) for stage in dag.computes)


def _of_stage(stage: Compute) -> int:
    return _count(stage.body) + (stage.combiner is not None)


def _count(expression: Expression) -> int:
    if isinstance(expression, Access):
        return 0
    inner = sum(_count(child) for child in children(expression))
    match expression:
        case Binary(_, left, _):
            return inner + _is_float(left)
        case Call(function, (left, _)) if function in _COUNTED:
            return inner + _is_float(left)
    return inner


def _is_float(expression: Expression) -> bool:
    """Whether the value is a float; what stages hold counts as such."""
    match expression:
        case Access():
            return True
        case Number(_, dtype) | Cast(dtype, _):
            return dtype.startswith("float")
        case Axis():
            return False
        case Call("if_then_else" | "select", (_, yes, _)):
            return _is_float(yes)
    return any(_is_float(child) for child in children(expression))
