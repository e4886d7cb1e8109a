"""Whether two Relay modules are the same but for the names of variables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm_ext.frontend.relay.ast import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    RelayModule,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
)

# A reason names the last steps on the way to the difference.
_STEPS = 6


def structural_difference(a: RelayModule, b: RelayModule, rtol: float = 1e-5) -> str:
    """Why two modules differ.

    Same are: the functions' names, the parameters and what is computed of them, with the same
    sharing (a value used twice in `a` is one value used twice in `b`), attributes and constants.
    The names of variables and of symbolic dimensions may differ, and a type may be missing.

    Parameters
    ----------
    a, b : RelayModule
    rtol : float
        The relative difference that attributes and scalar constants may have: Relay's text form
        has six digits of them. Other constants are equal bit for bit.

    Returns
    -------
    str
        The place and what is there in `a` and in `b`; empty if the modules are the same.
    """
    if set(a.functions) != set(b.functions):
        return f"functions: {sorted(a.functions)} against {sorted(b.functions)}"
    for name in a.functions:
        reason = _Comparison(rtol).run(name, a.functions[name], b.functions[name])
        if reason:
            return reason
    return ""


def structurally_equal(a: RelayModule, b: RelayModule, rtol: float = 1e-5) -> bool:
    """Whether `structural_difference` finds none."""
    return not structural_difference(a, b, rtol)


_Path = tuple[Any, ...]


class _Comparison:
    """One pair of functions. Expressions wait on a list: they are thousands deep."""

    def __init__(self, rtol: float) -> None:
        self._rtol = rtol
        self._left: dict[int, Expr] = {}
        self._right: dict[int, Expr] = {}
        self._dims: dict[str, str] = {}
        self._dims_back: dict[str, str] = {}
        self._waiting: list[tuple[Expr, Expr, _Path]] = []

    def run(self, name: str, a: Function, b: Function) -> str:
        self._waiting.append((a, b, ((), name)))
        while self._waiting:
            left, right, path = self._waiting.pop()
            reason = self._pair(left, right, path)
            if reason:
                return f"{_show(path)}: {reason}"
        return ""

    def _pair(self, a: Expr, b: Expr, path: _Path) -> str:
        if type(a) is not type(b):
            return f"{type(a).__name__} against {type(b).__name__}"
        # These may be written out at each use.
        if not isinstance(a, Constant | Op | GlobalVar):
            if id(a) in self._left or id(b) in self._right:
                same = self._left.get(id(a)) is b and self._right.get(id(b)) is a
                return "" if same else "shared with another place in one of both only"
            self._left[id(a)], self._right[id(b)] = b, a
        match a, b:
            case (Var(), Var()):
                return self._type(a.type, b.type)
            case (GlobalVar(), GlobalVar()):
                return "" if a.name == b.name else f"@{a.name} against @{b.name}"
            case (Op(), Op()):
                return "" if a.name == b.name else f"{a.name} against {b.name}"
            case (Constant(), Constant()):
                return self._constant(a.data, b.data)
            case (Call(), Call()):
                reason = self._value(dict(a.attrs), dict(b.attrs), "attributes")
                reason = reason or self._type(a.type, b.type)
                self._later([(a.callee, b.callee, "callee")], path)
                return reason or self._sequences(a.args, b.args, "argument", path)
            case (Tuple(), Tuple()):
                return self._sequences(a.fields, b.fields, "field", path)
            case (TupleGetItem(), TupleGetItem()):
                self._later([(a.value, b.value, "tuple")], path)
                return "" if a.index == b.index else f"field {a.index} against {b.index}"
            case (Let(), Let()):
                parts = [(a.body, b.body, "body"), (a.value, b.value, "value")]
                self._later([*parts, (a.var, b.var, "variable")], path)
            case (If(), If()):
                parts = [(a.false, b.false, "false branch"), (a.true, b.true, "true branch")]
                self._later([*parts, (a.condition, b.condition, "condition")], path)
            case (Function(), Function()):
                self._later([(a.body, b.body, "body")], path)
                reason = self._value(dict(a.attrs), dict(b.attrs), "attributes")
                reason = reason or self._type(a.ret_type, b.ret_type)
                return reason or self._sequences(a.params, b.params, "parameter", path)
        return ""

    def _later(self, pairs: list[tuple[Expr, Expr, str]], path: _Path) -> None:
        self._waiting += [(a, b, (path, label)) for a, b, label in pairs]

    def _sequences(self, a: tuple[Expr, ...], b: tuple[Expr, ...], label: str, path: _Path) -> str:
        if len(a) != len(b):
            return f"{len(a)} {label}s against {len(b)}"
        pairs = [(x, y, f"{label} {i}") for i, (x, y) in enumerate(zip(a, b, strict=True))]
        self._later(pairs[::-1], path)
        return ""

    def _type(self, a: Type | None, b: Type | None) -> str:
        same = a is None or b is None
        match a, b:
            case (TensorType(), TensorType()):
                pairs = zip(a.shape, b.shape, strict=False)
                same = a.dtype == b.dtype and len(a.shape) == len(b.shape)
                same = same and all(self._dim(x, y) for x, y in pairs)
            case (TupleType(), TupleType()):
                fields = zip(a.fields, b.fields, strict=False)
                same = len(a.fields) == len(b.fields)
                same = same and not any(self._type(x, y) for x, y in fields)
        return "" if same else f"type {a} against {b}"

    def _dim(self, a: int | str, b: int | str) -> bool:
        if isinstance(a, int) or isinstance(b, int) or "?" in (a, b):
            return a == b
        return self._dims.setdefault(a, b) == b and self._dims_back.setdefault(b, a) == a

    def _constant(self, a: np.ndarray, b: np.ndarray) -> str:
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"constant {a.dtype}{a.shape} against {b.dtype}{b.shape}"
        if a.shape == () and a.dtype.kind == "f":
            return self._value(a.item(), b.item(), "constant")
        return "" if a.tobytes() == b.tobytes() else "constants of other values"

    def _value(self, a: Any, b: Any, label: str) -> str:
        if type(a) is not type(b):
            return f"{label}: {a!r} against {b!r}"
        if isinstance(a, float):
            close = math.isclose(a, b, rel_tol=self._rtol) or (math.isnan(a) and math.isnan(b))
            return "" if close else f"{label}: {a} against {b}"
        if isinstance(a, dict):
            if set(a) != set(b):
                return f"{label}: {sorted(a)} against {sorted(b)}"
            return next(filter(None, (self._value(a[k], b[k], f"{label} {k}") for k in a)), "")
        if isinstance(a, list) and len(a) == len(b):
            pairs = zip(a, b, strict=True)
            return next(filter(None, (self._value(x, y, label) for x, y in pairs)), "")
        return "" if a == b else f"{label}: {a!r} against {b!r}"


def _show(path: _Path) -> str:
    steps: list[str] = []
    while path:
        path, label = path
        steps.append(label)
    shown = steps[::-1] if len(steps) <= _STEPS else [steps[-1], "...", *steps[_STEPS - 2 :: -1]]
    return ", ".join(shown)
