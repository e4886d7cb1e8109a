"""Run the command line in this process."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner, Result

from tvm_ext.cli import main


def run_command(*words: str | Path) -> Result:
    """What `tvm-ext` with these words prints, and its exit code."""
    return CliRunner().invoke(main, [str(word) for word in words])


def fails(message: str, *words: str | Path, code: int = 1) -> None:
    """Check that a command prints nothing but an error: one line, unless it is one of usage."""
    result = run_command(*words)
    assert result.exit_code == code
    assert result.stdout == ""
    assert re.search(message, result.stderr), result.stderr
    if code == 1:
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
