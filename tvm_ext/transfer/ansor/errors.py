"""What can go wrong between an Ansor record and a schedule of TensorIR."""

from __future__ import annotations

from tvm_ext.errors import TransferError


class DagError(TransferError):
    """A printed compute DAG can't be read, or an extent isn't determined by it.

    Parameters
    ----------
    reason : str
        What was found, and what is allowed.
    line, column : int or None
        Where in the text, from 1; None for what concerns the DAG as a whole.
    """

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        self.reason, self.line, self.column = reason, line, column
        place = f"line {line}, column {column}: " if line is not None else ""
        super().__init__(f"compute DAG: {place}{reason}")


class ReplayError(TransferError):
    """A step of a record can't be taken over.

    Parameters
    ----------
    step : int or None
        Its index among the record's steps, from 0; None for what follows from several of them.
    kind : str
        The kind of step, such as ``SP``; empty when there is none.
    reason : str
        What was found, and what is allowed, or the primitive's own words.
    """

    def __init__(self, step: int | None, kind: str, reason: str) -> None:
        self.step, self.kind, self.reason = step, kind, reason
        place = "the record" if step is None else f"step {step}" + (f", {kind}" if kind else "")
        super().__init__(f"{place}: {reason}")
