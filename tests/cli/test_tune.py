"""`tvm-ext tune`: the plan it writes, what its options do, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import tvm_ext
from tests import models
from tests.cli.commands import fails, run_command
from tests.schedules.kernels import HOST
from tests.transfer.log_lines_of import DATA, ansor, write
from tvm_ext.grouped_model import grouped
from tvm_ext.plan import Plan
from tvm_ext.plan_check import check_plan
from tvm_ext.transfer.tune_store import RECORDS

ARM = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"


def test_without_measuring(pooled_onnx: Path, bank_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "plan.yaml"
    result = run_command("tune", pooled_onnx, "-o", output, "--budget", "0", "--donors", bank_file)
    assert result.exit_code == 0, result.stderr
    plan = Plan.load(output)
    changed = [entry.name for entry in plan if entry.source == "transfer"]
    # The convolution's conversions to the model's own layout and back may cost more than it does.
    assert "matmul_6" in changed
    start = f"{output}: {len(changed)} of {len(plan)} layers changed, estimate "
    assert result.stdout.startswith(start)
    assert result.stderr == ""
    check_plan(plan, grouped(pooled_onnx, HOST).layers, HOST)
    built = run_command("build", pooled_onnx, "-o", tmp_path / "a.tvmx", "--plan", output)
    assert built.exit_code == 0, built.stderr


def test_records_stay_in_the_work_dir(pooled_onnx: Path, bank_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    words = ("tune", pooled_onnx, "-o", tmp_path / "plan.yaml", "--trials", "1")
    result = run_command(*words, "--work-dir", folder, "--donors", bank_file)
    assert result.exit_code == 0, result.stderr
    lines = (folder / RECORDS).read_text().splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])[1][1][0] > 0
    # They are donors of the next run; its own folder makes it a run without anything left to do.
    again = run_command(*words, "--work-dir", folder, "--donors", folder)
    assert again.exit_code == 0, again.stderr
    assert (folder / RECORDS).read_text().splitlines() == lines


def test_a_log_of_ansor_gives_its_schedules(pooled_onnx: Path, tmp_path: Path) -> None:
    product = next(
        record for text in (DATA / "ansor_versions.json").read_text().splitlines()
        if "matmul_add" in text and (record := json.loads(text))["r"][1] == 0
    )  # fmt: skip
    product["r"][0] = [1e-9]
    log = write(
        tmp_path / "log.json", json.dumps(product).encode() + b"\n", ansor(), ansor(error=4)
    )
    output = tmp_path / "plan.yaml"
    result = run_command("tune", pooled_onnx, "-o", output, "--budget", "0", "--donors", log)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.splitlines() == [
        f"{log}: 1 record of 1 kernel",
        "  1 skipped: computation: no text is known for this hash with these shapes",
        "  1 skipped: its measurement failed",
    ]
    plan = Plan.load(output)
    assert [entry.name for entry in plan if entry.source == "transfer"] == ["matmul_6"]
    inputs = models.inputs_for(models.convnet())
    got, _ = tvm_ext.build(pooled_onnx, plan=plan)(inputs)
    assert isinstance(got, np.ndarray)
    want = models.oracle(models.convnet(), inputs)[0]
    assert models.relative_error(got, want) < models.RTOL


def test_errors(convnet_onnx: Path, tmp_path: Path) -> None:
    words = ("tune", convnet_onnx, "-o", tmp_path / "plan.yaml")
    fails(r"gone\.onnx: no such file", "tune", tmp_path / "gone.onnx", "-o", tmp_path / "a")
    fails("donor .*nowhere: no such file or folder", *words, "--donors", tmp_path / "nowhere")
    fails("donor .* is neither a bank nor a log of Ansor's", *words, "--donors", convnet_onnx)
    fails("'search' doesn't end alone; give budget_s or trials", *words, "--method", "search")
    fails("can't measure for cortex-a72", *words, "--target", ARM, "--trials", "1")
    fails("Missing option '-o'", "tune", convnet_onnx, code=2)
    fails("'guess' is not one of", *words, "--method", "guess", code=2)
    fails("-1.0 is not in the range", *words, "--budget", "-1", code=2)
    assert not (tmp_path / "plan.yaml").exists()
