"""Tools that need packages of other versions, each in a Python of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def own_interpreter(variable: str, folder: str, error: type[Exception]) -> Path:
    """Return a tool's Python: the environment variable's, or the one that `make bench` makes.

    Parameters
    ----------
    variable : str
        The environment variable that may name it.
    folder : str
        Of the tool's virtual environment, in this one's.
    error : type
        Raised if there is no such file.
    """
    chosen = os.environ.get(variable)
    python = Path(chosen) if chosen else Path(sys.prefix) / folder / "bin" / "python"
    if not python.exists():
        # In results, a path of this machine would mean nothing.
        where = python if chosen else f"{folder}/bin/python in the environment"
        raise error(f"not installed: there is no {where}")
    return python
