"""The functions that a printed compute DAG calls: as TVM has them, and in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from tvm import tirx

from tvm_ext.schedules.scalar_functions import power


@dataclass(frozen=True, slots=True)
class Function:
    """A function of scalars.

    Attributes
    ----------
    arity : int
    tir : callable
        Of TVM's expressions.
    numpy : callable
        Of arrays that broadcast.
    """

    arity: int
    tir: Callable[..., Any]
    numpy: Callable[..., Any]


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


FUNCTIONS = MappingProxyType(
    {
        "if_then_else": Function(3, tirx.if_then_else, np.where),
        "select": Function(3, tirx.Select, np.where),
        "max": Function(2, tirx.max, np.maximum),
        "min": Function(2, tirx.min, np.minimum),
        "floordiv": Function(2, tirx.floordiv, np.floor_divide),
        "floormod": Function(2, tirx.floormod, np.mod),
        # The 0.75 of local response normalisation as square roots: libm's call isn't vectorised.
        "pow": Function(2, power, np.power),
        "exp": Function(1, tirx.exp, np.exp),
        "log": Function(1, tirx.log, np.log),
        "sqrt": Function(1, tirx.sqrt, np.sqrt),
        "rsqrt": Function(1, tirx.rsqrt, lambda x: 1 / np.sqrt(x)),
        "tanh": Function(1, tirx.tanh, np.tanh),
        "sigmoid": Function(1, tirx.sigmoid, _sigmoid),
        "erf": Function(1, tirx.erf, _erf),
        "fabs": Function(1, tirx.abs, np.abs),
        "abs": Function(1, tirx.abs, np.abs),
        "floor": Function(1, tirx.floor, np.floor),
        "ceil": Function(1, tirx.ceil, np.ceil),
        "round": Function(1, tirx.round, np.round),
    }
)
"""By name, without the prefix ``tir.``."""

DTYPES = (
    "float16", "float32", "float64", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
"""Dtypes that a cast can name."""
