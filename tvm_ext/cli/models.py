"""From a path on the command line to a model."""

from __future__ import annotations

from pathlib import Path

import tvm_ext
from tvm_ext.artifact.read import is_artifact
from tvm_ext.cli.options import Shapes
from tvm_ext.cli.progress import build_progress
from tvm_ext.executable import Executable
from tvm_ext.plan import Plan


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


def open_model(path: str, target: str, shapes: Shapes) -> Executable:
    """Load a saved model, or build one."""
    return tvm_ext.load(path) if is_saved(path) else build_model(path, target, shapes)


def build_model(
    path: str, target: str, shapes: Shapes, plan_file: str | None = None,
    fusion_database: str | None = None,
) -> Executable:  # fmt: skip
    """Build a model, with a progress bar."""
    chosen = None if plan_file is None else Plan.load(plan_file)
    with build_progress() as progress:
        return tvm_ext.build(
            existing(path), target,
            input_shapes=dict(shapes) or None, plan=chosen, fusion_database=fusion_database,
            progress=progress,
        )  # fmt: skip
