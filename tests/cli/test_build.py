"""`tvm-ext build`: the file and the line it prints."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tvm_ext
from tests import models
from tests.cli.commands import fails, run_command
from tvm_ext.transfer.bank import BANK_VARIABLE


def test_the_saved_model_is_right(convnet_onnx: Path, tmp_path: Path) -> None:
    saved = tmp_path / "model.tvmx"
    result = run_command("build", convnet_onnx, "-o", saved)
    assert result.exit_code == 0, result.stderr
    assert re.search(r"model\.tvmx: \d+ layers for .*, 0\.\d MB", result.stdout)
    inputs = models.inputs_for(models.convnet())
    want = models.oracle(models.convnet(), inputs)[0]
    got = tvm_ext.load(saved)(inputs)
    assert isinstance(got, np.ndarray)
    assert models.relative_error(got, want) < models.RTOL


def test_the_bank_is_used_unless_told_otherwise(
    pooled_onnx: Path, bank_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "model.tvmx"
    monkeypatch.setenv(BANK_VARIABLE, str(bank_file))
    for words, source in (((), "bank"), (("--tuning", "none"), "default")):
        result = run_command("build", pooled_onnx, "-o", saved, *words)
        assert result.exit_code == 0, result.stderr
        entry = tvm_ext.load(saved).plan["matmul_6"]
        assert (entry.source, entry.algorithm == "tuned") == (source, source == "bank")
    monkeypatch.setenv(BANK_VARIABLE, str(tmp_path / "none.gz"))
    words = ("build", pooled_onnx, "-o", saved)
    fails("can't read the bank", *words)
    assert run_command(*words, "--tuning", "none").exit_code == 0
    fails("'log' is not one of 'bank', 'none'", *words, "--tuning", "log", code=2)


def test_errors(convnet_onnx: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone.onnx"
    fails(r"gone\.onnx: no such file", "build", gone, "-o", tmp_path / "a")
    fails("Missing option '-o'", "build", convnet_onnx, code=2)


def test_fusion_is_measured_into_a_file(convnet_onnx: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.jsonl").write_text("nothing\n")
    fails(
        r"wrong\.jsonl, line 1: not a fusion record",
        "build", convnet_onnx, "-o", tmp_path / "a", "--fusion-database", tmp_path / "wrong.jsonl",
    )  # fmt: skip
    file = tmp_path / "fusion.jsonl"
    result = run_command(
        "build", convnet_onnx, "-o", tmp_path / "model.tvmx", "--fusion-database", file
    )
    assert result.exit_code == 0, result.stderr
