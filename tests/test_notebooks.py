"""Every notebook runs from top to bottom, and is stored without outputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.markdown import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# In a process of its own: the kernel client's event loop warns about things that aren't ours.
_EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], 4)
NotebookClient(book, timeout=300, kernel_name="python3").execute()
nbformat.write(book, sys.argv[2])
"""


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _EXECUTE, str(path), "done.ipynb"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    book = nbformat.read(tmp_path / "done.ipynb", 4)
    outputs = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error"]
    assert any("image/png" in out.get("data", {}) for out in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_clean(path: Path) -> None:
    book = nbformat.read(path, 4)
    nbformat.validate(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
