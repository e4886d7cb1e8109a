"""`tvm-ext classes`: the kernels, and the classes in one line."""

from __future__ import annotations

import re
from pathlib import Path

from tests import models
from tests.cli.commands import fails, run_command


def test_table_and_row(convnet_onnx: Path) -> None:
    result = run_command("classes", convnet_onnx)
    assert result.exit_code == 0, result.stderr
    *table, row = result.stdout.splitlines()
    assert table[0].startswith("kernels; share of untuned time estimated")
    # Stem and the two branches convolve and apply relu; the stem has a bias as well.
    assert re.search(r"conv2d add relu .*1x3x12x12.*16x3x3x3", result.stdout)
    assert row.startswith("A (1, ")
    assert "; B (2, " in row
    assert sum(int(share) for share in re.findall(r"(\d+)%", row)) in range(97, 104)


def test_input_shape_and_target(tmp_path: Path) -> None:
    path = tmp_path / "open.onnx"
    path.write_bytes(models.open_batch().SerializeToString())
    fails("batch", "classes", path)
    result = run_command("classes", path, "--input-shape", "x:3,4", "--target", "core-avx2")
    assert result.exit_code == 0, result.stderr
    fails("unknown mcpu 'core-avx9'", "classes", path, "--target", "core-avx9")
