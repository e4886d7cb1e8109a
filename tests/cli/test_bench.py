"""`tvm-ext bench`: the latency, and the table against another engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.commands import fails, run_command


@pytest.mark.usefixtures("all_threads")
def test_bench(convnet_file: Path) -> None:
    result = run_command("bench", convnet_file, "--runs", "3", "--threads", "1")
    assert result.exit_code == 0, result.stderr
    assert re.match(r"\d+\.\d+ ms \(p10 .* of peak\n", result.stdout)


def test_against_onnxruntime(convnet_onnx: Path) -> None:
    result = run_command("bench", convnet_onnx, "--runs", "3", "--against", "onnxruntime")
    assert result.exit_code == 0, result.stderr
    rows = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == ["tvm_ext", "onnxruntime"]


def test_usage_errors(convnet_file: Path) -> None:
    fails("needs an .onnx file", "bench", convnet_file, "--against", "onnxruntime", code=2)
    fails("0 is not in the range", "bench", convnet_file, "--threads", "0", code=2)
