"""What the stages of a chain of rows have in common.

Each takes all rows of the one before it. Its parameters are those of the kernel that computes it
alone, under names of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules.base import Algorithm, Params, Support
from tvm_ext.schedules.emit_epilogue import declare_operands
from tvm_ext.target import CpuTarget

# Of a row and a column: the element before the stage.
Read = Callable[[Any, Any], tirx.Expr]
# Of a row and a column, and the element after the stage; called in a vectorised loop.
Write = Callable[[Any, Any, tirx.Expr], None]


class RowStage(ABC):
    """One stage, and while a kernel is made its arguments.

    Parameters
    ----------
    workload
        Without its producer.
    before : RowStage or None
        What computes its rows; None of the first, which reads the kernel's input.
    last : bool
        Whether it stores the kernel's output.
    number : int
        Of the stage among those of its type.

    Attributes
    ----------
    rows, columns : int
        Of its result.
    weights : int
        How many constants it has.
    """

    # The kernel that computes a stage alone, and what a chain calls those of its parameters that
    # the stage has, too.
    alone: Algorithm[Any]
    parameters: ClassVar[dict[str, str]] = {}
    rows: int
    columns: int
    weights = 0

    def __init__(self, workload: Any, before: RowStage | None, last: bool, number: int) -> None:
        self.workload, self.before, self.last = workload, before, last
        self._names = {key: name.format(number) for key, name in self.parameters.items()}
        self._operands: list[Any] = []

    @abstractmethod
    def supports(self, target: CpuTarget) -> Support:
        """Whether it can compute its rows from those of the stage before it."""

    def space(self, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        """Its parameters with their legal values, under the chain's names."""
        own = self.alone.space(self.workload, target)
        return {name: own[key] for key, name in self._names.items()}

    def default(self, target: CpuTarget) -> dict[str, Any]:
        """Its parameters when nothing was measured, under the chain's names."""
        own = self.alone.default(self.workload, target)
        return {name: own[key] for key, name in self._names.items()}

    def own(self, params: Params) -> dict[str, Any]:
        """Those of a chain's parameters that are its own, under the names of `alone`."""
        return {key: params[name] for key, name in self._names.items()}

    @abstractmethod
    def seconds(self, params: Params, target: CpuTarget) -> float:
        """Estimated time; what the stages hand on stays in cache."""

    def pack(
        self, params: Params, target: CpuTarget, weights: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Its constants in the form that the kernel reads."""
        return [np.ascontiguousarray(w) for w in weights]

    def declare_input(self, block: int) -> None:
        """Declare the kernel's input, in channel blocks of `block`; only of a first stage."""
        raise NotImplementedError

    def declare_weights(self, params: Params, target: CpuTarget) -> None:
        """Declare its constants, if it has any."""
        assert not self.weights

    def declare_operands(self, prefix: str) -> None:
        """Declare what its epilogue reads."""
        self._operands = declare_operands(self.workload.epilogue, 0, prefix)

    def place(self, row: Any, column: Any) -> Any:
        """Where an element lies in the kernel's output; only of a last stage."""
        return row * self.columns + column

    @abstractmethod
    def emit(self, params: Params, target: CpuTarget, read: Read | None, write: Write) -> None:
        """Compute all rows; a first stage reads what it declared."""
