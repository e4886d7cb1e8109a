"""A printed compute DAG read into its stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tvm_ext.transfer.ansor.dag_ast import (
    Axis,
    Combiner,
    Compute,
    DagText,
    Placeholder,
    Stage,
    walk,
)
from tvm_ext.transfer.ansor.dag_expression import ExpressionParser
from tvm_ext.transfer.ansor.dag_tokens import Token, tokens
from tvm_ext.transfer.ansor.errors import DagError

_T = TypeVar("_T")
_COMBINERS: dict[str, Combiner] = {"+=": "sum", "max": "max", "min": "min"}


def parse_dag(text: str) -> DagText:
    """Read a DAG as Ansor's ``ComputeDAG`` prints it.

    A line is a stage: ``p0 = PLACEHOLDER [1, 64]``, ``T_add(i, j) = (a[i, j] + p0[0, j])``, or a
    reduction with ``+=``, ``max=`` or ``min=``. A name that several stages share means the last
    one before the line that reads it.

    Raises
    ------
    DagError
        A line that is none of these, a function or stage that isn't known, an index too many or
        too few, or a stage that nothing reads although a later one has its name. With line and
        column.
    """
    stages: list[Stage] = []
    names: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            stage = _LineParser(tokens(line, number), names, stages).stage()
            names[stage.label] = stage.name
            stages.append(stage)
    dag = DagText(tuple(stages))
    if not dag.outputs:
        raise DagError("no stage computes anything; allowed: placeholders and at least one other")
    for output in dag.outputs:
        if names[output.label] != output.name:
            raise DagError(
                f"nothing reads the first of the stages named {output.label!r}; a shared name "
                "means the last one before the line that reads it"
            )
    return dag


class _LineParser(ExpressionParser):
    """Reads one line, a stage."""

    def __init__(self, line: list[Token], names: dict[str, str], stages: list[Stage]) -> None:
        ranks = {s.name: len(s.shape if isinstance(s, Placeholder) else s.axes) for s in stages}
        super().__init__(line, names, ranks)
        self._used = ranks.keys()

    def stage(self) -> Stage:
        name = self.take("name", "the name of a stage")
        if self.sees("="):
            self.sign("=")
            stage: Stage = self._placeholder(name.text)
        else:
            stage = self._compute(name.text)
        self.take("end", "the end of the line")
        return stage

    def _placeholder(self, label: str) -> Placeholder:
        word = self.take("name", "PLACEHOLDER")
        if word.text != "PLACEHOLDER":
            raise self.error("PLACEHOLDER", word)
        shape = self._list("[", "]", self._size)
        return Placeholder(self._unique(label), tuple(shape), label)

    def _compute(self, label: str) -> Compute:
        axes = self._list("(", ")", lambda: self.take("name", "the name of an axis").text)
        combiner = self._combiner()
        body = self.expression()
        found = dict.fromkeys(e.name for e in walk(body) if isinstance(e, Axis))
        reduce_axes = tuple([name for name in found if name not in axes])
        if combiner is None and reduce_axes:
            token = next(t for t in self.line if t.text == reduce_axes[0])
            raise self.error(f"one of the axes ({', '.join(axes)}) or a stage above", token)
        return Compute(self._unique(label), label, tuple(axes), reduce_axes, combiner, body)

    def _combiner(self) -> Combiner | None:
        token = self.next()
        if token.text == "=":
            return None
        if token.text not in _COMBINERS:
            raise self.error("one of = += max= min=", token)
        if token.kind == "name":
            self.sign("=")
        return _COMBINERS[token.text]

    def _size(self) -> int:
        token = self.take("number", "a size")
        if not token.text.isdigit() or int(token.text) == 0:
            raise self.error("a size, an integer above 0", token)
        return int(token.text)

    def _list(self, start: str, end: str, item: Callable[[], _T]) -> list[_T]:
        self.sign(start)
        items: list[_T] = []
        while not self.sees(end):
            if items:
                self.sign(",")
            items.append(item())
        self.sign(end)
        return items

    def _unique(self, label: str) -> str:
        name, number = label, 0
        while name in self._used:
            number += 1
            name = f"{label}_{number}"
        return name
