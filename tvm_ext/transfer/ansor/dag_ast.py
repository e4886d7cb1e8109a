"""What a printed compute DAG says: its stages and their expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Combiner = Literal["sum", "max", "min"]


@dataclass(frozen=True, slots=True)
class Number:
    """A constant; `dtype` is int32 for one without point, exponent and suffix."""

    value: int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of the stage by its name, spatial or of a reduction."""

    name: str


@dataclass(frozen=True, slots=True)
class Access:
    """An element of another stage, named uniquely."""

    stage: str
    indices: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `dag_functions.FUNCTIONS`."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands and one of ``+ - * / % < <= > >= == != && ||``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Unary:
    """One operand and ``-`` or ``!``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    """A value as another dtype."""

    dtype: str
    operand: Expression


Expression = Number | Axis | Access | Call | Binary | Unary | Cast


@dataclass(frozen=True, slots=True)
class Placeholder:
    """An input.

    Attributes
    ----------
    name : str
        Unique in the DAG.
    shape : tuple of int
        As printed.
    label : str
        The name as printed; several stages can share it.
    """

    name: str
    shape: tuple[int, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Compute:
    """A computed stage.

    Attributes
    ----------
    name : str
        Unique in the DAG: the printed name, and from its second use on a number behind it.
    label : str
        The name as printed.
    axes : tuple of str
        The spatial axes.
    reduce_axes : tuple of str
        Names in the expression that aren't spatial axes, in the order in which they appear first.
        The text lists them nowhere; TOPI's operators use them in the order of their declaration.
    combiner : str or None
        How a reduction combines: ``sum`` (printed +=), ``max`` or ``min``; None for none.
    body : Expression
    """

    name: str
    label: str
    axes: tuple[str, ...]
    reduce_axes: tuple[str, ...]
    combiner: Combiner | None
    body: Expression


Stage = Placeholder | Compute


@dataclass(frozen=True, slots=True)
class DagText:
    """A parsed DAG: its stages in Ansor's order, which the steps of a record count by."""

    stages: tuple[Stage, ...]

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """The inputs, in order."""
        return tuple([s for s in self.stages if isinstance(s, Placeholder)])

    @property
    def computes(self) -> tuple[Compute, ...]:
        """The other stages, in order."""
        return tuple([s for s in self.stages if isinstance(s, Compute)])

    @property
    def outputs(self) -> tuple[Compute, ...]:
        """The computed stages that no other one reads."""
        read = {a.stage for c in self.computes for a in walk(c.body) if isinstance(a, Access)}
        return tuple([c for c in self.computes if c.name not in read])


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands, arguments or indices."""
    match expression:
        case Access(_, parts) | Call(_, parts):
            return parts
        case Binary(_, left, right):
            return left, right
        case Unary(_, operand) | Cast(_, operand):
            return (operand,)
        case _:
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all in it, left to right."""
    yield expression
    for child in children(expression):
        yield from walk(child)
