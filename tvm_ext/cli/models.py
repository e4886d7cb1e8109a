"""From a path on the command line to a model."""

from __future__ import annotations

from pathlib import Path

import tvm_ext
from tvm_ext.artifact.read import is_artifact
from tvm_ext.cli.options import Shapes
from tvm_ext.cli.progress import build_progress
from tvm_ext.executable import Executable


def existing(path: str) -> Path:
    """The path, if a file is there.

    Raises
    ------
    FileNotFoundError
    """
    if not Path(path).is_file():
        raise FileNotFoundError(2, "no such file", path)
    return Path(path)


def is_saved(path: str) -> bool:
    """Whether a file holds (or says that it holds) a compiled model."""
    return existing(path).suffix == ".tvmx" or is_artifact(path)


def open_model(
    path: str, target: str, shapes: Shapes, tuning: str = "bank", precision: str = "highest"
) -> Executable:
    """Load a saved model, whose plan was made when it was built, or build one."""
    if is_saved(path):
        return tvm_ext.load(path)
    with build_progress() as progress:
        return tvm_ext.build(
            existing(path), target,
            input_shapes=dict(shapes) or None, tuning=tuning, precision=precision,
            progress=progress,
        )  # fmt: skip
