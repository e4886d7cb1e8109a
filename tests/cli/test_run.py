"""`tvm-ext run`: inputs in every form, the outputs' file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests import models
from tests.cli.commands import fails, run_command


def test_npy_in_and_npz_out(convnet_file: Path, tmp_path: Path) -> None:
    inputs = models.inputs_for(models.convnet())
    np.save(tmp_path / "x.npy", inputs["x"])
    words = ("--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz")
    result = run_command("run", convnet_file, *words)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("scores: float32 [1, 10], ")
    with np.load(tmp_path / "out.npz") as outputs:
        want = models.oracle(models.convnet(), inputs)[0]
        assert models.relative_error(outputs["scores"], want) < models.RTOL


def test_inputs_from_one_npz(convnet_file: Path, tmp_path: Path) -> None:
    inputs = models.inputs_for(models.convnet())
    np.savez(tmp_path / "in.npz", **inputs)
    for word in (tmp_path / "in.npz", f"x={tmp_path / 'in.npz'}"):
        result = run_command("run", convnet_file, "--input", word)
        assert result.exit_code == 0, result.stderr
    fails("has no array 'y'; it has", "run", convnet_file, "--input", f"y={tmp_path / 'in.npz'}")


def test_errors(convnet_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "bad.npy", np.zeros((2, 2), "float32"))
    fails(r"'x' has shape \(2, 2\)", "run", convnet_file, "--input", f"x={tmp_path / 'bad.npy'}")
    (tmp_path / "text.npy").write_text("hello")
    fails("is not a .npy or .npz", "run", convnet_file, "--input", f"x={tmp_path / 'text.npy'}")
    fails("not like NAME=FILE.npy", "run", convnet_file, "--input", "x", code=2)
