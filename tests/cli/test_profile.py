"""`tvm-ext profile`: the table and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import run_command


@pytest.mark.usefixtures("all_threads")
def test_table_and_page(convnet_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run_command("profile", convnet_file, "--runs", "2", "--threads", "1", "--html", page)
    assert result.exit_code == 0, result.stderr
    assert "conv2d_0" in result.stdout
    assert page.read_text().startswith("<!DOCTYPE html>")
