"""What matching needs to know of a function."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import relax
from tvm.ir import GenericConst as Constant

from tvm_ext.passes import dataflow as df

# Constants up to so many elements are compared by what they hold, larger ones by who they are.
_SMALL = 64


class Graph:
    """The bindings so far, and who reads them.

    Attributes
    ----------
    values : dict of Var to Expr
        The expression bound to each variable.
    readers : dict of Var to int
        How many bindings read it, the function's result included.
    """

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.readers: dict[Any, int] = {}
        self._calls: dict[Any, list[Any]] = {}
        self._operators: dict[Any, str] = {}

    def operator(self, expr: Any) -> str:
        """The operator's name, without ``relax.``, of a call or of the one behind a variable."""
        known = self._operators.get(expr) if isinstance(expr, relax.Var) else None
        return df.op_name(self.value(expr)).removeprefix("relax.") if known is None else known

    def value(self, expr: Any) -> Any:
        """The expression behind a variable; any other expression is itself."""
        return self.values.get(expr, expr) if isinstance(expr, relax.Var) else expr

    def bind(self, var: relax.Var, expr: Any, readers: int) -> None:
        """Add a binding."""
        self.values[var] = expr
        self.readers[var] = readers
        self._operators[var] = df.op_name(expr).removeprefix("relax.")
        if self._operators[var] and isinstance(var.ty, relax.TensorType):
            self._calls.setdefault(_key(expr), []).append(var)

    def add_readers(self, var: relax.Var, count: int) -> None:
        """Readers of a binding, or of a parameter, that weren't known."""
        self.readers[var] = self.readers.get(var, 0) + count

    def earlier(self, call: relax.Call) -> Any:
        """The variable of an equal call, None if there is none."""
        for var in self._calls.get(_key(call), ()):
            if _equal(self.values[var], call):
                return var
        return None


def _key(call: relax.Call) -> tuple[Any, ...]:
    """Equal for equal calls; what it leaves out (attributes, shapes) `_equal` compares."""
    return (call.op, *(_operand(a) for a in call.args))


def _operand(expr: Any) -> Any:
    if isinstance(expr, relax.Tuple):
        return tuple(_operand(f) for f in expr.fields)
    if isinstance(expr, Constant):
        if _size(expr) > _SMALL:
            return expr
        return df.dtype_of(expr), df.shape_of(expr), expr.value.numpy().tobytes()
    return expr if isinstance(expr, relax.Var) else None


def _size(constant: Any) -> int:
    size = 1
    for dim in df.shape_of(constant):
        size *= dim
    return size


def _equal(a: relax.Call, b: relax.Call) -> bool:
    """Whether calls with the same key agree in the rest."""
    if (a.attrs is None) != (b.attrs is None):
        return False
    if a.attrs is not None and not tvm_ffi.structural_equal(a.attrs, b.attrs):
        return False
    return all(_agree(x, y) for x, y in zip(a.args, b.args, strict=True))


def _agree(x: Any, y: Any) -> bool:
    if isinstance(x, relax.Tuple):
        return all(_agree(*pair) for pair in zip(x.fields, y.fields, strict=True))
    if isinstance(x, (relax.Var, Constant)):
        return True  # equal by the key
    return bool(tvm_ffi.structural_equal(x, y))
