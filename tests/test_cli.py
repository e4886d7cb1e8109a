"""The command line: what it prints and writes, its exit codes, its one-line errors."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tvm_ext
from tests import models
from tvm_ext import threads
from tvm_ext.cli import main
from tvm_ext.plan import Plan

_COMMANDS = ("build", "plan", "bench", "profile", "run", "info")


def _run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def _fails(message: str, *words: str | Path, code: int = 1) -> None:
    result = _run(*words)
    assert result.exit_code == code
    assert result.stdout == ""
    assert re.search(message, result.stderr), result.stderr
    if code == 1:
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1


@pytest.fixture
def all_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo --threads."""
    before = threads.default_threads()
    monkeypatch.setenv("TVM_NUM_THREADS", str(before))
    yield
    threads.use(before)


def test_build_run_and_info(convnet_onnx: Path, tmp_path: Path) -> None:
    saved = tmp_path / "model.tvmx"
    built = _run("build", convnet_onnx, "-o", saved)
    assert built.exit_code == 0, built.stderr
    assert re.search(r"model\.tvmx: \d+ layers for .*, 0\.\d MB", built.stdout)

    inputs = models.inputs_for(models.convnet())
    np.save(tmp_path / "x.npy", inputs["x"])
    ran = _run("run", saved, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith("scores: float32 [1, 10], ")
    with np.load(tmp_path / "out.npz") as outputs:
        want = models.oracle(models.convnet(), inputs)[0]
        assert models.relative_error(outputs["scores"], want) < models.RTOL

    described = [_run("info", path).stdout for path in (saved, convnet_onnx)]
    assert described[0] == described[1]
    for line in ("  x: float32 [1, 3, 12, 12]", "  scores: float32 [1, 10]"):
        assert line in described[0].splitlines()
    assert re.search(r"^operators: conv2d 3, ", described[0], re.M)
    assert re.search(r"^layers: \d+ \(spatial_pack \d", described[0], re.M)


def test_plan_and_build_from_it(convnet_onnx: Path, tmp_path: Path) -> None:
    result = _run("plan", convnet_onnx, "-o", tmp_path / "plan.yaml")
    assert result.exit_code == 0
    plan = Plan.load(tmp_path / "plan.yaml")
    assert result.stdout.strip() == str(plan).strip()
    plan["conv2d_0"].algorithm = "magic"
    plan.save(tmp_path / "plan.yaml")
    saved = tmp_path / "model.tvmx"
    _fails(
        "layer conv2d_0: algorithm 'magic'",
        *("build", convnet_onnx, "-o", saved, "--plan", tmp_path / "plan.yaml"),
    )
    assert not saved.exists()


@pytest.mark.usefixtures("all_threads")
def test_bench_and_profile(convnet_file: Path, tmp_path: Path) -> None:
    result = _run("bench", convnet_file, "--runs", "3", "--threads", "1")
    assert result.exit_code == 0, result.stderr
    assert re.match(r"\d+\.\d+ ms \(p10 .* of peak\n", result.stdout)
    result = _run("profile", convnet_file, "--runs", "2", "--html", tmp_path / "page.html")
    assert result.exit_code == 0, result.stderr
    assert "conv2d_0" in result.stdout
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_bench_against_onnxruntime(convnet_onnx: Path) -> None:
    result = _run("bench", convnet_onnx, "--runs", "3", "--against", "onnxruntime")
    assert result.exit_code == 0, result.stderr
    rows = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == ["tvm_ext", "onnxruntime"]


def test_input_shape(tmp_path: Path) -> None:
    path = tmp_path / "open.onnx"
    path.write_bytes(models.open_batch().SerializeToString())
    _fails("batch", "plan", path)
    result = _run("info", path, "--input-shape", "x:3,4")
    assert result.exit_code == 0, result.stderr
    assert "  x: float32 [3, 4]" in result.stdout.splitlines()


def test_inputs_from_one_npz(convnet_file: Path, tmp_path: Path) -> None:
    inputs = models.inputs_for(models.convnet())
    np.savez(tmp_path / "in.npz", **inputs)
    for word in (tmp_path / "in.npz", f"x={tmp_path / 'in.npz'}"):
        result = _run("run", convnet_file, "--input", word)
        assert result.exit_code == 0, result.stderr
    _fails("has no array 'y'; it has", "run", convnet_file, "--input", f"y={tmp_path / 'in.npz'}")


def test_user_errors(convnet_file: Path, convnet_onnx: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone.onnx"
    for command in ("plan", "info", "bench", "profile"):
        _fails(r"gone\.onnx: no such file", command, gone)
    _fails(r"gone\.onnx: no such file", "build", gone, "-o", tmp_path / "a")
    _fails("unknown mcpu 'core-avx9'", "plan", convnet_onnx, "--target", "core-avx9")
    np.save(tmp_path / "bad.npy", np.zeros((2, 2), "float32"))
    _fails(r"'x' has shape \(2, 2\)", "run", convnet_file, "--input", f"x={tmp_path / 'bad.npy'}")
    (tmp_path / "text.npy").write_text("hello")
    _fails("is not a .npy or .npz", "run", convnet_file, "--input", f"x={tmp_path / 'text.npy'}")
    (tmp_path / "text.tvmx").write_text("hello")
    _fails("not a saved model", "info", tmp_path / "text.tvmx")
    (tmp_path / "text.onnx").write_text("hello")
    _fails(r"text\.onnx", "info", tmp_path / "text.onnx")


def test_usage_errors(convnet_file: Path, convnet_onnx: Path) -> None:
    _fails("Missing argument 'MODEL'", "plan", code=2)
    _fails("No such command", "fly", code=2)
    _fails("Missing option '-o'", "build", convnet_onnx, code=2)
    _fails("not like x:1,3,224,224", "plan", convnet_onnx, "--input-shape", "x=1", code=2)
    _fails("not like NAME=FILE.npy", "run", convnet_file, "--input", "x", code=2)
    _fails("needs an .onnx file", "bench", convnet_file, "--against", "onnxruntime", code=2)
    _fails("0 is not in the range", "bench", convnet_file, "--threads", "0", code=2)


@pytest.mark.parametrize("command", _COMMANDS)
def test_help_has_examples(command: str) -> None:
    result = _run(command, "--help")
    assert result.exit_code == 0
    assert f"tvm-ext {command} model" in result.stdout


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
