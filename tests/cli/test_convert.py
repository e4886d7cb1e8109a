"""`tvm-ext convert`: an old Relay module written in every format, and what it says of errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tvm_ext
from tests.cli.commands import fails, run_command
from tests.frontend.cases import run_onnxruntime
from tvm_ext.frontend.relay.params import write_relay_params

MODULE = """#[version = "0.0.5"]
def @main(%data: Tensor[(2, 3), float32], %weight: Tensor[(4, 3), float32]) {
  %0 = nn.dense(%data, %weight, units=4);
  nn.relu(%0)
}
"""
OPEN = MODULE.replace("%data: Tensor[(2, 3)", "%data: Tensor[(?, 3)")
WEIGHT = np.arange(12, dtype="float32").reshape(4, 3) - 5
DATA = np.array([[1, -2, 3], [0.5, 0, -1]], "float32")
RESULT = np.maximum(DATA @ WEIGHT.T, 0)


@pytest.fixture
def relay_text(tmp_path: Path) -> Path:
    path = tmp_path / "old.relay.txt"
    path.write_text(MODULE)
    return path


@pytest.fixture
def relay_params(tmp_path: Path) -> Path:
    path = tmp_path / "old.params"
    write_relay_params(path, {"weight": WEIGHT})
    return path


def test_onnx(relay_text: Path, relay_params: Path, tmp_path: Path) -> None:
    output = tmp_path / "new.onnx"
    result = run_command("convert", relay_text, "--params", relay_params, "-o", output)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{output}: ONNX, opset 18; inputs data; 0.0 MB\n"
    np.testing.assert_allclose(run_onnxruntime(onnx.load(output), {"data": DATA})[0], RESULT)


def test_relax(relay_text: Path, relay_params: Path, tmp_path: Path) -> None:
    output = tmp_path / "new.json"
    result = run_command("convert", relay_text, "--params", relay_params, "-o", output)
    assert result.exit_code == 0, result.stderr
    assert "weights inside; inputs data" in result.stdout
    np.testing.assert_allclose(tvm_ext.build(output)(DATA), RESULT)
    shown = tmp_path / "new.py"
    assert run_command("convert", output, "-o", shown).exit_code == 0
    assert "R.nn.relu" in shown.read_text()


def test_weights_in_npz_and_open_dimensions(tmp_path: Path) -> None:
    module, params = tmp_path / "open.txt", tmp_path / "weights.npz"
    module.write_text(OPEN)
    np.savez(params, weight=WEIGHT)
    words = ("convert", module, "--params", params, "-o", tmp_path / "new.onnx")
    fails(r"input 'data', dimension 0 is dynamic", *words)
    result = run_command(*words, "--input-shape", "data:5,3")
    assert result.exit_code == 0, result.stderr
    (data,) = onnx.load(tmp_path / "new.onnx").graph.input
    assert [d.dim_value for d in data.type.tensor_type.shape.dim] == [5, 3]


def test_without_params_weights_are_inputs(relay_text: Path, tmp_path: Path) -> None:
    result = run_command("convert", relay_text, "-o", tmp_path / "new.onnx")
    assert "inputs data, weight;" in result.stdout


def test_errors(relay_text: Path, relay_params: Path, tmp_path: Path) -> None:
    output = tmp_path / "new.onnx"
    fails(r"allowed: \.onnx \(ONNX.*\.json.*\.py", "convert", relay_text, "-o", tmp_path / "x.pb")
    fails(r"gone\.json: no such file", "convert", tmp_path / "gone.json", "-o", output)
    fails(
        r"gone\.params: no such file",
        *("convert", relay_text, "--params", tmp_path / "gone.params", "-o", output),
    )
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    fails("begins neither as a Relay module", "convert", other, "-o", output)
    other.write_text('{"root_index": 3, "nodes": [')
    fails("can't be read as a Relax module", "convert", other, "-o", output)
    relay_params.write_bytes(relay_params.read_bytes()[:-3])
    fails(r"old\.params", "convert", relay_text, "--params", relay_params, "-o", output)
    relay_text.write_text(MODULE.replace("nn.relu", "argwhere"))
    fails("argwhere: 1 in @main", "convert", relay_text, "-o", output)
    relay_text.write_text(MODULE.replace("nn.relu(%0)", "cumsum(%0, axis=1)"))
    fails(r"write the model as \.json.*cumsum: ", "convert", relay_text, "-o", output)
    assert not output.exists()


def test_usage() -> None:
    fails("Missing option", "convert", "old.json", code=2)
    assert "tvm-ext convert old.json" in run_command("convert", "--help").stdout
