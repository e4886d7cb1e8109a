"""`tvm-ext profile`: the table and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tvm_ext
from tests.cli.commands import fails, run_command


@pytest.mark.usefixtures("all_threads")
def test_table_and_page(convnet_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run_command("profile", convnet_file, "--runs", "2", "--threads", "1", "--html", page)
    assert result.exit_code == 0, result.stderr
    assert "conv2d_0" in result.stdout
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("command", ["profile", "bench"])
def test_tuning(convnet_onnx: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    asked: list[str] = []
    original = tvm_ext.build

    def build(*args: Any, tuning: str, **options: Any) -> tvm_ext.Executable:
        asked.append(tuning)
        return original(*args, tuning=tuning, **options)

    monkeypatch.setattr(tvm_ext, "build", build)
    for words in ((), ("--tuning", "none")):
        result = run_command(command, convnet_onnx, "--runs", "2", *words)
        assert result.exit_code == 0, result.stderr
    assert asked == ["bank", "none"]
    fails("'log' is not one of 'bank', 'none'", command, convnet_onnx, "--tuning", "log", code=2)
