"""What a test of a rewrite rule consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import op

Body = Callable[..., Any]
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """A rule's example.

    Attributes
    ----------
    rule : str
    inputs : dict of str to tuple of int
    body : callable
        ``body(emit, *inputs)`` gives the result.
    ops : list of str
        The operators that are left.
    numpy : callable
        The result of float64 arrays.
    refused : dict of str to (inputs, body)
        Graphs of the same kind that the rule leaves alone, by a part of the reason.
    low, high : float
        Range of the random inputs.
    dtype : str
    """

    rule: str
    inputs: Shapes
    body: Body
    ops: list[str]
    numpy: Callable[..., np.ndarray]
    refused: dict[str, tuple[Shapes, Body]] = field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0
    dtype: str = "float32"


def scalar(value: float) -> Any:
    """A constant without dimensions."""
    return relax.const(value, "float32")


def chain(*operators: Callable[[Any], Any]) -> Body:
    """A graph of operators of one tensor, one after the other."""

    def body(emit: Any, x: Any) -> Any:
        for operator in operators:
            x = emit(operator(x))
        return x

    return body


def turn(*axes: int) -> Callable[[Any], Any]:
    """A transposition."""
    return lambda x: op.permute_dims(x, axes)


def shaped(*shape: int) -> Callable[[Any], Any]:
    """A reshape."""
    return lambda x: op.reshape(x, shape)


def part(axis: int, begin: int, end: int) -> Callable[[Any], Any]:
    """A slice of one axis."""
    return lambda x: op.strided_slice(x, [axis], [begin], [end])
