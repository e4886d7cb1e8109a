"""An ONNX graph as it is written, and which function writes an operator of Relax's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import constant
from tvm_ext.passes import dataflow as df


@dataclass
class GraphWriter:
    """Nodes and initialisers of ONNX, and the names that Relax's variables have there."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    names: dict[relax.Var, tuple[str, ...]] = field(default_factory=dict)
    constants: dict[Any, str] = field(default_factory=dict)

    def write(self, var: relax.Var, value: Any) -> bool:
        """Write one binding; return False if it has no form in ONNX."""
        if not isinstance(value, relax.Call):
            if not isinstance(value, relax.Var | relax.Tuple | relax.TupleGetItem):
                return False
            self.names[var] = tuple(self.values(value))
            return True
        writer = _WRITERS.get(df.op_name(value))
        written = None if writer is None else writer(self, value, var.ty)
        if written is None:
            return False
        self.names[var] = written
        return True

    def values(self, expr: Any) -> list[str]:
        """The names of a value, or of a tuple's fields."""
        if isinstance(expr, relax.Tuple):
            return [name for part in expr.fields for name in self.values(part)]
        if isinstance(expr, relax.TupleGetItem):
            return [self.values(expr.tuple_value)[expr.index]]
        if isinstance(expr, relax.Var):
            return list(self.names[expr])
        return [self.constant(expr)]

    def constant(self, expr: Any) -> str:
        """The initialiser of a constant; one for all its uses."""
        if expr not in self.constants:
            value = constant(expr)
            self.constants[expr] = self.array(np.asarray(value))
        return self.constants[expr]

    def array(self, value: np.ndarray) -> str:
        """A new initialiser."""
        name = f"constant{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def ints(self, values: Sequence[Any]) -> str:
        """A new initialiser of whole numbers."""
        return self.array(np.asarray([int(n) for n in values], "int64"))

    def node(
        self, op: str, inputs: Sequence[str], outputs: int = 1, **attrs: Any
    ) -> tuple[str, ...]:
        """A new node; its results' names."""
        first = f"value{len(self.nodes)}"
        names = (first, *(f"{first}_{i}" for i in range(1, outputs)))
        self.nodes.append(helper.make_node(op, list(inputs), list(names), **attrs))
        return names


# The names of an operator's results; None if this use of it has no form in ONNX.
Writer = Callable[[GraphWriter, relax.Call, Any], "tuple[str, ...] | None"]
_WRITERS: dict[str, Writer] = {}


def writes(*names: str) -> Callable[[Writer], Writer]:
    """Register what writes operators, by Relax's names without ``relax.``."""

    def register(function: Writer) -> Writer:
        _WRITERS.update(dict.fromkeys((f"relax.{name}" for name in names), function))
        return function

    return register
