"""The command as a whole: help, errors of every command, the installed script."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

import tvm_ext
from tests.cli.commands import fails, run_command


@pytest.mark.parametrize(
    "command", ["build", "plan", "tune", "bench", "profile", "run", "info", "classes", "prune"]
)
def test_help_has_examples(command: str) -> None:
    result = run_command(command, "--help")
    assert result.exit_code == 0
    assert f"tvm-ext {command} model" in result.stdout


@pytest.mark.parametrize("command", ["plan", "info", "bench", "profile", "classes"])
def test_no_such_file(tmp_path: Path, command: str) -> None:
    fails(r"gone\.onnx: no such file", command, tmp_path / "gone.onnx")


def test_no_such_command() -> None:
    fails("No such command", "fly", code=2)


def test_the_installed_command(convnet_file: Path, tmp_path: Path) -> None:
    command = Path(sysconfig.get_path("scripts"), "tvm-ext")
    environment = {**os.environ, "HOME": str(tmp_path)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *words], capture_output=True, text=True, env=environment, cwd=tmp_path
        )

    version = run("--version")
    assert version.stdout.split() == ["tvm-ext,", "version", tvm_ext.__version__]
    missing = run("info", "gone.onnx")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == "error: gone.onnx: no such file\n"
    assert run("info", str(convnet_file)).stdout.startswith("inputs:\n  x: float32")
