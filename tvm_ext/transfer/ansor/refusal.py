"""What a primitive of TensorIR refuses, as the error of the step that asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tvm_ext.schedules.tuned import first_line
from tvm_ext.transfer.ansor.errors import ReplayError

# ScheduleError is a RuntimeError; TVM's own checks raise the others.
_REFUSED = (RuntimeError, ValueError, IndexError, TypeError)


@contextmanager
def refused(step: int | None, kind: str, what: str = "") -> Iterator[None]:
    """Turn a refusal inside into a `ReplayError` of this step, `what` before its reason."""
    try:
        yield
    except _REFUSED as error:
        raise ReplayError(step, kind, what + first_line(error)) from error
