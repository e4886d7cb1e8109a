"""Relax modules in the files that ``tvm.ir.save_json`` of this TVM writes."""

from __future__ import annotations

import re
from pathlib import Path

import tvm

from tvm_ext.errors import ModelError

_BEGIN = re.compile(r'\s*\{\s*"(?:root_index|nodes|metadata)"\s*:')


def is_relax_json(path: str | Path) -> bool:
    """Whether a file begins as such a graph does; False if it isn't there."""
    try:
        with open(path, "rb") as file:
            return bool(_BEGIN.match(file.read(200).decode(errors="replace")))
    except OSError:
        return False


def read_relax_json(path: str | Path) -> tvm.IRModule:
    """Read a module with its constants.

    Raises
    ------
    ModelError
        The file is truncated, of another version of TVM, or holds something else.
    """
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    try:
        module = tvm.ir.load_json(text)
    # TVM raises errors of many kinds for a damaged graph.
    except Exception as err:
        raise ModelError(f"{path}: can't be read as a Relax module: {err}") from err
    if not isinstance(module, tvm.IRModule):
        raise ModelError(f"{path}: holds a {type(module).__name__}, not an IRModule")
    return module
