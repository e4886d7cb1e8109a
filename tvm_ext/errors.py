"""Every error a user can meet: each names the option, layer or file, the value, and the limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class TvmExtError(Exception):
    """Base class: catching it catches everything that tvm_ext raises on purpose."""


class VersionError(TvmExtError):
    """The installed apache-tvm or apache-tvm-ffi is not the one this release is made for."""


class MissingPackageError(TvmExtError):
    """A part of tvm_ext is used that needs an optional package, and that isn't installed."""


class ModelError(TvmExtError):
    """The model file or object can't be read: truncated, invalid, or of an unknown kind."""


class InputShapeError(TvmExtError):
    """An input dimension is missing, negative, or names an input that the model doesn't have."""


class UnsupportedOperatorsError(ModelError):
    """The model uses operators that have no converter.

    Parameters
    ----------
    nodes : Mapping[str, Iterable[str]]
        For every unsupported operator (as ``domain::OpType``, or ``OpType`` in the default
        domain), the names of all nodes that use it.
    remedy : str
        What the user can do about it.
    """

    def __init__(
        self,
        nodes: Mapping[str, Iterable[str]],
        remedy: str = "register one with tvm_ext.frontend.register_onnx_converter",
    ) -> None:
        self.nodes = {op: tuple(names) for op, names in nodes.items()}
        lines = [f"  {op}: {', '.join(names)}" for op, names in sorted(self.nodes.items())]
        super().__init__(
            f"the model uses operators without a converter ({remedy}):\n" + "\n".join(lines)
        )


class TargetError(TvmExtError):
    """The target is unknown or isn't a CPU that tvm_ext can generate code for."""


class OptionError(TvmExtError):
    """An option of `build` or of a pass has a value that it doesn't know."""


class PruningError(TvmExtError):
    """A layer can't be pruned: none has that name, or its weights are NaN or misshapen."""


class TrainingError(TvmExtError):
    """Training can't go on: the loss isn't finite, or the data loader gives something else."""


class CheckpointError(TvmExtError):
    """A training checkpoint is truncated, or of another run: other options, seed or model."""


class PlanError(TvmExtError):
    """A plan doesn't fit: unknown layer, algorithm, parameter, or a value out of its space."""


class CallError(TvmExtError):
    """A compiled model was called with a wrong input name, count, shape or dtype."""


class ArtifactError(TvmExtError):
    """A saved model file is truncated, from another version, or for another kind of CPU."""


class DatabaseError(TvmExtError):
    """A database of measurements holds something else."""


class TransferError(TvmExtError):
    """A schedule can't be taken over: other loops, or a step that TensorIR refuses."""


class TuningError(TvmExtError):
    """Tuning can't start or go on: a wrong option, or a directory of other records."""


class LogError(TvmExtError):
    """A log can't be read or written: not there, without a readable record, of mixed formats."""


class RecordError(LogError):
    """A line of a log is no record that can be used.

    Parameters
    ----------
    reason : str
        The kind of defect, the same words for all lines that have it.
    detail : str
        What was found in this line, and what is allowed.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else reason)
