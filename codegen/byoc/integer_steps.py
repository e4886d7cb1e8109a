"""Steps of arithmetic on integers: chains of calls, and operands less their zero point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_ext.codegen.byoc.graph import INTEGERS, Graph
from tvm_ext.passes import dataflow as df


class Chain:
    """Walks from a call to those that it is computed from, and keeps the values on the way.

    Attributes
    ----------
    inside : list of Var
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.inside: list[Any] = []

    def value(self, expr: Any) -> Any:
        """What a variable is bound to, as a part of the chain."""
        self.inside.append(expr)
        return self.graph.value(expr)

    def last(self, expr: Any, *names: str) -> Any:
        """The last of nested calls, each the first argument of the one before.

        `expr` is the first of them; None where a call is of another operator.
        """
        call = None
        for name in names:
            if self.graph.op(expr) != f"relax.{name}":
                return None
            call = self.value(expr)
            expr = call.args[0]
        return call

    def below(self, call: Any, *names: str) -> Any:
        """As `last`, from the first argument of a call on; None for None."""
        return None if call is None else self.last(call.args[0], *names)


@dataclass(frozen=True)
class Operand:
    """An 8-bit variable as int32 or float32, its zero point subtracted or still in it."""

    var: Any
    zero_point: np.ndarray
    steps: tuple[Any, ...]


def centred(graph: Graph, expr: Any) -> Operand | None:
    """``astype(x)`` or ``astype(x) - zero_point`` of an 8-bit variable; None for anything else."""
    zero: np.ndarray | None = np.zeros((), "int32")
    steps = [expr]
    if graph.op(expr) == "relax.subtract":
        call = graph.value(expr)
        zero, expr = graph.constant(call.args[1]), call.args[0]
        steps.append(expr)
    if not is_cast(graph, expr) or zero is None:
        return None
    var = graph.value(expr).args[0]
    if df.dtype_of(var) not in INTEGERS or graph.constant(var) is not None:
        return None
    return Operand(var, zero, tuple(steps))


def is_cast(graph: Graph, expr: Any) -> bool:
    """Whether an expression is a value in another type."""
    return graph.op(expr) == "relax.astype"
