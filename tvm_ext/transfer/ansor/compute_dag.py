"""A workload of Ansor's: its stages in the order that a record's steps count by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from tvm_ext.transfer.ansor.dag_ast import DagText, Placeholder, Stage
from tvm_ext.transfer.ansor.dag_extents import Extents, infer_extents
from tvm_ext.transfer.ansor.dag_numpy import evaluate_dag
from tvm_ext.transfer.ansor.dag_parse import parse_dag
from tvm_ext.transfer.ansor.dag_tensors import dag_tensors
from tvm_ext.transfer.ansor.errors import DagError


@dataclass(frozen=True, slots=True)
class DagStage:
    """A stage.

    Attributes
    ----------
    name : str
        Unique: the name of its block in TensorIR.
    label : str
        Its name in what Ansor prints; several stages can share it.
    placeholder : bool
    """

    name: str
    label: str
    placeholder: bool


@dataclass(frozen=True, eq=False)
class ComputeDag:
    """Stages, and the function that computes them without a schedule.

    Attributes
    ----------
    stages : tuple of DagStage
        In Ansor's order.
    arguments : tuple of (str, shape)
        The function's: placeholders, then outputs.
    function : tirx.PrimFunc
        One block a computed stage, named as the stage.
    text : DagText
        The expressions.
    extents : Extents
        Of all axes by stage.
    """

    stages: tuple[DagStage, ...]
    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    function: tirx.PrimFunc
    text: DagText
    extents: Extents

    @classmethod
    def parse(
        cls,
        text: str,
        shapes: Sequence[Any],
        *,
        flops: float | None = None,
        reduce_extents: Mapping[str, int] | None = None,
        dtypes: Mapping[str, str] | None = None,
    ) -> ComputeDag:
        """A DAG as Ansor prints it (``print(ComputeDAG)``), with its own constants and shapes.

        Ansor gives DAGs that differ in sizes alone one hash, yet prints sizes into the text, so
        every workload needs its own. The text leaves out extents; `dag_extents` says how they are
        found, and when evidence is needed. Constants have the six digits that are printed.

        Parameters
        ----------
        text : str
        shapes : sequence
            What stands behind the hash in a workload's key: shapes of placeholders and outputs, or
            (logs up to v0.5) their sizes in a row.
        flops : float, optional
            Ansor's count of the DAG's operations, as evidence for extents.
        reduce_extents : Mapping[str, int], optional
            Extents of reductions by axis or by ``stage.axis``.
        dtypes : Mapping[str, str], optional
            Of placeholders by name; float32 where missing, since the text has none.

        Raises
        ------
        DagError
            The text can't be read, the shapes don't fit it, or an extent isn't determined.
        """
        dag = parse_dag(text)
        inputs, outputs = _split_shapes(dag, shapes)
        extents = infer_extents(dag, outputs, flops, reduce_extents)
        tensors = dag_tensors(dag, inputs, extents, dtypes or {})
        ends: tuple[Stage, ...] = (*dag.placeholders, *dag.outputs)
        arguments = [tensors[stage.name] for stage in ends]
        stages = [DagStage(s.name, s.label, isinstance(s, Placeholder)) for s in dag.stages]
        described = [(t.op.name, tuple([int(n) for n in t.shape])) for t in arguments]
        return cls(tuple(stages), tuple(described), te.create_prim_func(arguments), dag, extents)

    def evaluate(self, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The outputs by numpy, in float64: what every schedule has to compute."""
        return evaluate_dag(self.text, self.extents, inputs)


def _split_shapes(
    dag: DagText, shapes: Sequence[Any]
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The shapes of placeholders and of outputs."""
    ranks = [len(p.shape) for p in dag.placeholders] + [len(o.axes) for o in dag.outputs]
    if all(isinstance(size, int) for size in shapes) and len(shapes) == sum(ranks):
        sizes = iter(shapes)
        nested = [tuple([next(sizes) for _ in range(rank)]) for rank in ranks]
    else:
        nested = [tuple(s) if isinstance(s, Sequence) else (s,) for s in shapes]
    if [len(shape) for shape in nested] != ranks:
        raise DagError(f"the shapes are {nested}; allowed: {len(ranks)} shapes of ranks {ranks}")
    inputs, outputs = nested[: len(dag.placeholders)], nested[len(dag.placeholders) :]
    for placeholder, shape in zip(dag.placeholders, inputs, strict=True):
        if placeholder.shape != shape:
            raise DagError(
                f"{placeholder.name} is printed as {list(placeholder.shape)}, "
                f"the shapes say {list(shape)}"
            )
    return inputs, outputs
