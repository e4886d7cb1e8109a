"""A file from which a training run goes on."""

from __future__ import annotations

import hashlib
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tvm_ext.errors import CheckpointError
from tvm_ext.files import replacing

_FORMAT = 1


class Checkpoint:
    """Writes and reads the state of one run; a file of another run is refused.

    Parameters
    ----------
    path : str or Path
    run : dict of str to str
        What makes the run what it is, in words: schemes, options, seed, model.
    """

    def __init__(self, path: str | Path, run: dict[str, str]) -> None:
        self.path, self._run = Path(path), run

    def save(self, state: dict[str, Any]) -> None:
        """Write the state; the file appears whole, or stays what it was.

        Raises
        ------
        ArtifactError
            The file can't be written.
        """
        with replacing(self.path) as stream:
            torch.save({"format": _FORMAT, "run": self._run, "state": state}, stream)

    def load(self) -> dict[str, Any] | None:
        """The state in the file; None if there is no file.

        Raises
        ------
        CheckpointError
            The file is truncated, no checkpoint, or of another run.
        """
        if not self.path.exists():
            return None
        if not zipfile.is_zipfile(self.path):
            raise CheckpointError(f"{self.path} is truncated, or isn't a checkpoint")
        try:
            # Nothing in the file is executed.
            content = torch.load(self.path, map_location="cpu", weights_only=True)
        except (RuntimeError, pickle.UnpicklingError, OSError) as error:
            raise CheckpointError(f"{self.path} can't be read as a checkpoint: {error}") from error
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise CheckpointError(f"{self.path} isn't a checkpoint of format {_FORMAT}")
        for key, value in self._run.items():
            found = content["run"].get(key)
            if found != value:
                raise CheckpointError(
                    f"{self.path} is of a run with another {key}: {found}, not {value}; "
                    "remove it, or give this run a file of its own"
                )
        return dict(content["state"])


def open_checkpoint(
    path: str | Path | None,
    *,
    model: nn.Module,
    optimizer: Callable[..., torch.optim.Optimizer],
    **run: Any,
) -> Checkpoint | None:
    """The checkpoint of a run; None without a path.

    Parameters
    ----------
    path : str or Path, optional
    model : torch.nn.Module
        That the run starts from.
    optimizer : callable
        (list of parameters, lr=learning rate) -> an optimizer.
    **run
        What else makes the run what it is; modules count by their contents.
    """
    if path is None:
        return None
    # Functions have no name that lasts, but what they make shows its settings.
    example = optimizer(list(model.parameters()), lr=1.0)
    words = {
        key: _model_digest(value) if isinstance(value, nn.Module) else repr(value)
        for key, value in {"model": model, **run}.items()
    }
    words["optimizer"] = f"{type(example).__name__} {example.defaults}"
    return Checkpoint(path, words)


def _model_digest(model: nn.Module) -> str:
    """A digest of a model's parameters and buffers, with their names, shapes and dtypes."""
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        if isinstance(value, torch.Tensor):
            digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
            # As bytes: NumPy doesn't know every dtype.
            flat = value.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
