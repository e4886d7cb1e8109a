"""`tvm-ext plan`: what it prints and writes; `build --plan` follows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import models
from tests.cli.commands import fails, run_command
from tvm_ext.plan import Plan
from tvm_ext.transfer.bank import BANK_VARIABLE


def test_plan_and_build_from_it(convnet_onnx: Path, tmp_path: Path) -> None:
    result = run_command("plan", convnet_onnx, "-o", tmp_path / "plan.yaml")
    assert result.exit_code == 0
    plan = Plan.load(tmp_path / "plan.yaml")
    assert result.stdout.strip() == str(plan).strip()
    plan["conv2d_0"].algorithm = "magic"
    plan.save(tmp_path / "plan.yaml")
    saved = tmp_path / "model.tvmx"
    fails(
        "layer conv2d_0: algorithm 'magic'",
        *("build", convnet_onnx, "-o", saved, "--plan", tmp_path / "plan.yaml"),
    )
    assert not saved.exists()


def test_input_shape(tmp_path: Path) -> None:
    path = tmp_path / "open.onnx"
    path.write_bytes(models.open_batch().SerializeToString())
    fails("batch", "plan", path)
    result = run_command("plan", path, "--input-shape", "x:3,4")
    assert result.exit_code == 0, result.stderr


def test_usage_errors(convnet_onnx: Path) -> None:
    fails("Missing argument 'MODEL'", "plan", code=2)
    fails("not like x:1,3,224,224", "plan", convnet_onnx, "--input-shape", "x=1", code=2)


def test_unknown_target(convnet_onnx: Path) -> None:
    fails("unknown mcpu 'core-avx9'", "plan", convnet_onnx, "--target", "core-avx9")


def test_the_bank_is_used_unless_told_otherwise(
    pooled_onnx: Path, bank_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "plan.yaml"
    monkeypatch.setenv(BANK_VARIABLE, str(bank_file))
    for words, source in (
        ((), "bank"), (("--tuning", "bank"), "bank"), (("--tuning", "none"), "default"),
    ):  # fmt: skip
        result = run_command("plan", pooled_onnx, "-o", output, *words)
        assert result.exit_code == 0, result.stderr
        assert Plan.load(output)["matmul_6"].source == source
    fails("'log' is not one of 'bank', 'none'", "plan", pooled_onnx, "--tuning", "log", code=2)
