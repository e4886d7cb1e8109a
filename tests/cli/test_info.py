"""`tvm-ext info`: the same for a model and for its compiled file."""

from __future__ import annotations

import re
from pathlib import Path

from tests import models
from tests.cli.commands import fails, run_command


def test_a_model_and_its_compiled_file(convnet_onnx: Path, convnet_file: Path) -> None:
    described = [run_command("info", path).stdout for path in (convnet_file, convnet_onnx)]
    assert described[0] == described[1]
    for line in ("  x: float32 [1, 3, 12, 12]", "  scores: float32 [1, 10]"):
        assert line in described[0].splitlines()
    assert re.search(r"^operators: conv2d 3, ", described[0], re.M)
    assert re.search(r"^layers: \d+ \(spatial_pack \d", described[0], re.M)


def test_input_shape(tmp_path: Path) -> None:
    path = tmp_path / "open.onnx"
    path.write_bytes(models.open_batch().SerializeToString())
    result = run_command("info", path, "--input-shape", "x:3,4")
    assert result.exit_code == 0, result.stderr
    assert "  x: float32 [3, 4]" in result.stdout.splitlines()


def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "text.tvmx").write_text("hello")
    fails("not a saved model", "info", tmp_path / "text.tvmx")
    (tmp_path / "text.onnx").write_text("hello")
    fails(r"text\.onnx", "info", tmp_path / "text.onnx")
