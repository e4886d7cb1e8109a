"""Tuning from end to end: a killed search, its records as a donor, plans that build."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tvm_ext
from tests.passes.relax_models import array, run
from tests.schedules.kernels import HOST, NEON
from tests.transfer.programs import matmul_layer, program, record
from tests.transfer.tuning import OPTIONS, network
from tvm_ext.errors import TuningError
from tvm_ext.executable import Executable
from tvm_ext.plan import Plan
from tvm_ext.transfer.tune_donors import read_folder
from tvm_ext.transfer.tune_options import TuningProgress
from tvm_ext.transfer.tune_store import RECORDS
from tvm_ext.transfer.tune_whole import Change
from tvm_ext.tune import tune

TRIALS = 8
SCRIPT = f"""
import sys
# TVM would import it, which takes most of its start.
sys.modules["torch"] = None
from tests.transfer.tuning import OPTIONS, network
from tvm_ext.tune import tune
if __name__ == "__main__":
    tune(network(6, 4), method="search", trials={TRIALS}, work_dir=sys.argv[1], options=OPTIONS,
         progress=lambda at: print(at.measured, flush=True))
"""


def lines(folder: Path) -> list[str]:
    return (folder / RECORDS).read_text().splitlines()


def is_right(plan: Plan, size: int, filters: int) -> bool:
    """Whether the model built from a plan computes what TVM's own pipeline does."""
    mod, x = network(size, filters), array(9, 1, filters, size, size)
    exe = tvm_ext.build(mod, plan=Plan.from_yaml(plan.to_yaml()))
    expected = run(mod, x)
    return bool(np.abs(exe(x) - expected).max() <= 1e-4 * np.abs(expected).max())


@pytest.fixture(scope="module")
def donor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a search that was killed after its first measurements, and finished later."""
    folder = tmp_path_factory.mktemp("donor")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)], stdout=subprocess.PIPE, text=True,
        env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "2\n"
        process.send_signal(signal.SIGKILL)
    before = lines(folder)
    assert 2 <= len(before) < TRIALS
    told: list[TuningProgress] = []
    plan = tune(
        network(6, 4), method="search", trials=TRIALS, work_dir=folder, options=OPTIONS,
        progress=told.append,
    )  # fmt: skip
    assert lines(folder)[: len(before)] == before
    assert told[-1].measured == TRIALS
    assert told[0].measured > len(before)
    assert {entry.source for entry in plan} <= {"default", "tuned"}
    assert is_right(plan, 6, 4)
    return folder


def test_no_record_is_lost_or_doubled(donor: Path) -> None:
    records = [json.loads(line) for line in lines(donor)]
    assert len(records) == TRIALS
    assert len({json.dumps([index, trace]) for index, (trace, *_) in records}) == TRIALS
    assert [path.name for path in donor.iterdir() if path.is_dir()] == []


def test_transfer_to_another_size(donor: Path, tmp_path: Path) -> None:
    told: list[TuningProgress] = []
    plan = tune(
        network(8, 6), method="transfer", trials=4, donors=[donor], work_dir=tmp_path,
        options=OPTIONS, progress=told.append,
    )  # fmt: skip
    assert told[-1].measured == len(lines(tmp_path)) == 4
    assert told[-1].failed == 0
    assert 0 < told[-1].latency_us <= told[0].latency_us
    assert {entry.source for entry in plan} <= {"default", "transfer"}
    assert is_right(plan, 8, 6)


def test_kernels_whose_turn_does_not_come_get_the_most_similar_schedule(
    donor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One candidate is measured, of the slowest kernel; the whole model would decide on both."""
    seen: list[Change] = []

    def kept(model: object, start: Executable, changes: list[Change], *_: object) -> Plan:
        seen.extend(changes)
        return start.plan

    module = sys.modules["tvm_ext.tune"]
    monkeypatch.setattr(module, "keep_winners", kept)
    slow = {"conv2d_0": 2.0, "conv2d_1": 2.0, "matmul_3": 1.0}
    monkeypatch.setattr(module, "layer_seconds", lambda _: slow)
    product = record(program(matmul_layer()), 1e-6)
    donors = {"convolutions": read_folder(donor), "product": [product]}
    plan = tune(network(8, 6), donors=donors, trials=1, options=OPTIONS)
    # Both layers have their kernel's measured schedule, and the product has an estimate.
    assert [sorted(change.layers) for change in seen] == [["conv2d_0", "conv2d_1"], ["matmul_3"]]
    assert all(e.source == "transfer" for change in seen for e in change.layers.values())
    assert 3.9 < seen[0].gain_s < 4.0 and 0.9 < seen[1].gain_s < 1.0
    assert plan.to_yaml() == tvm_ext.plan(network(8, 6)).to_yaml()


@pytest.mark.usefixtures("steady")
def test_without_measurement_the_most_similar_schedule_is_taken(donor: Path) -> None:
    fast = {"fast": [replace(r, seconds=1e-12) for r in read_folder(donor)]}
    plan = tune(network(8, 6), budget_s=0, donors=fast)
    tuned = [entry for entry in plan if entry.algorithm == "tuned"]
    assert [entry.ops for entry in tuned if "nn.conv2d" in entry.ops] == [
        ["nn.conv2d", "nn.relu"]
    ] * 2
    assert all(entry.source == "transfer" and entry.layout[0] == entry.layout[1] for entry in tuned)
    assert all(len(entry.params["record"]) == 12 for entry in tuned)
    # Both layers of the kernel have the same trace, and the donor's time times the work.
    assert tuned[0].params == tuned[1].params
    assert tuned[0].estimate_us == pytest.approx(1e-6 * (6 * 64 * 6) / (4 * 36 * 4))
    assert is_right(plan, 8, 6)


def test_a_donor_that_promises_no_gain_changes_nothing(donor: Path) -> None:
    slow = {"slow": [replace(r, seconds=1.0) for r in read_folder(donor)]}
    mod = network(8, 6)
    assert tune(mod, budget_s=0, donors=slow).to_yaml() == tvm_ext.plan(mod).to_yaml()
    failed = {"failed": [replace(r, seconds=math.inf) for r in read_folder(donor)]}
    assert tune(mod, budget_s=0, donors=failed).to_yaml() == tvm_ext.plan(mod).to_yaml()


def test_no_donors_and_other_machines_are_refused() -> None:
    mod = network(6, 4)
    with pytest.raises(TuningError, match="needs donors with records; there are none"):
        tune(mod, donors={})
    with pytest.raises(TuningError, match=r"can't measure for cortex-a72 .* allowed: budget_s=0"):
        tune(mod, NEON, method="search", trials=1)
    assert HOST.is_host
