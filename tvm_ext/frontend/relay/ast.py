"""Relay's expressions and types as plain data.

The JSON reader and the text reader both make them; the converters take them. Only the part of Relay
that describes networks is there: no patterns, no constructors, no references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# A dimension: a number, or the name of one that is open (Relay's ``Any`` is "?").
Dim = int | str


@dataclass(frozen=True)
class TensorType:
    """A tensor; a scalar's shape is ``()``."""

    shape: tuple[Dim, ...]
    dtype: str


@dataclass(frozen=True)
class TupleType:
    """Several values."""

    fields: tuple[Type, ...]


Type = TensorType | TupleType


@dataclass(frozen=True, eq=False)
class Var:
    """A parameter or a name bound by `Let`; one object for every use of the same variable."""

    name: str
    type: Type | None = None


@dataclass(frozen=True, eq=False)
class GlobalVar:
    """A function of the module, by its name."""

    name: str


@dataclass(frozen=True, eq=False)
class Constant:
    """A literal tensor."""

    data: np.ndarray


@dataclass(frozen=True, eq=False)
class Op:
    """An operator of Relay's, such as ``nn.conv2d``."""

    name: str


@dataclass(frozen=True, eq=False)
class Call:
    """An operator, a function or a global function applied to arguments.

    Attributes
    ----------
    callee : Op, GlobalVar, Function or Var
    args : tuple of Expr
    attrs : mapping of str to plain data
        Numbers, booleans, strings, None, and lists of them: ``{"strides": [2, 2], "groups": 1}``.
    type : Type, optional
        The result's, where the file says it.
    """

    callee: Expr
    args: tuple[Expr, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    type: Type | None = None


@dataclass(frozen=True, eq=False)
class Tuple:
    """Several expressions as one value."""

    fields: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class TupleGetItem:
    """One field of a tuple, counted from 0."""

    value: Expr
    index: int


@dataclass(frozen=True, eq=False)
class Let:
    """``let var = value; body``."""

    var: Var
    value: Expr
    body: Expr


@dataclass(frozen=True, eq=False)
class If:
    """A choice by a scalar boolean."""

    condition: Expr
    true: Expr
    false: Expr


@dataclass(frozen=True, eq=False)
class Function:
    """A function; `attrs` has ``Primitive: 1`` where Relay had fused it."""

    params: tuple[Var, ...]
    body: Expr
    attrs: Mapping[str, Any] = field(default_factory=dict)
    ret_type: Type | None = None


Expr = Var | GlobalVar | Constant | Op | Call | Tuple | TupleGetItem | Let | If | Function


@dataclass(frozen=True)
class RelayModule:
    """Functions by name; ``main`` is the model.

    Attributes
    ----------
    functions : dict of str to Function
    version : str
        TVM's, or the text form's, as the file states it; empty where it doesn't.
    """

    functions: Mapping[str, Function]
    version: str = ""
