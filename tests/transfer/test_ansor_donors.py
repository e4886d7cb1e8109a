"""Ansor's records as donors: what fits, that it is right, and what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.passes.relax_models import array
from tests.schedules.kernels import HOST
from tests.transfer.ansor.test_replay_nhwc import dag_of, small_of_each_class
from tests.transfer.ansor_logs import line, task, tasks, with_tasks
from tests.transfer.log_lines_of import CUDA, KEY, ansor, write
from tests.transfer.programs import conv_layer, layers_of, numpy_conv, program, run
from tvm_ext.layers import Layer
from tvm_ext.transfer import ansor_donors
from tvm_ext.transfer.ansor import ShippedTask, replay
from tvm_ext.transfer.ansor.replay import replay_steps
from tvm_ext.transfer.ansor.step_fields import parse_steps
from tvm_ext.transfer.ansor.vector_loops import with_vector_loops
from tvm_ext.transfer.ansor_donors import ansor_records, donor_function, log_records, tasks_file
from tvm_ext.transfer.ansor_log import read_ansor_line
from tvm_ext.transfer.record import Source
from tvm_ext.transfer.tune_candidates import ranked, transferred
from tvm_ext.transfer.tuned_record import TunedRecord

CONV = ("nn.conv2d", "add", "nn.relu")


@cache
def donors(of: ShippedTask) -> list[TunedRecord]:
    """A task's fastest records."""
    return ansor_records(of.records, lambda _: of.dag, Counter())


def is_right(layer: Layer, of: ShippedTask, arrays: list[np.ndarray], expected: np.ndarray) -> None:
    """Check one schedule of each rule, of the task's records in turn."""
    made = program(layer)
    found = list(transferred(made.workload.function, donors(of), HOST))
    assert len(found) >= 3
    for candidate in found[:2]:
        got = run(candidate.mod["main"], [*arrays, *made.constants], expected.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


# channels, filters, size, kernel, stride, epilogue; and the donor.
CONVOLUTIONS: dict[str, tuple[tuple[Any, ...], Callable[[], ShippedTask]]] = {
    "tiles that don't divide": (
        (12, 24, 13, 3, 1, ("add", "relu")), lambda: task("conv2d_NCHWc_add_nn_relu", padded=True)
    ),
    "of a padded one": (
        (16, 32, 7, 1, 1, ("add", "relu")), lambda: task("conv2d_NCHWc_add_nn_relu", padded=True)
    ),
    "of one without padding": (
        (3, 16, 15, 3, 2, ("add", "relu")), lambda: task("conv2d_NCHWc_add_nn_relu", padded=False)
    ),
    "bare": ((8, 16, 8, 3, 1, ()), lambda: task("conv2d_NCHWc_add")),
    "of one with a sum": ((8, 20, 9, 3, 1, ("add", "relu")), lambda: task(
        "conv2d_NCHWc_add_add_nn_relu")),
    "longer": (
        (8, 16, 28, 1, 1, ("add", "relu", "add")), lambda: task("conv2d_NCHWc_add_nn_relu")
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case: str) -> None:
    kernel, donor = CONVOLUTIONS[case]
    channels, _, size, side, stride, epilogue = kernel
    layer = conv_layer(*kernel)
    x = array(0, 1, channels, size, size)
    made = program(layer)
    bias = made.constants[1] if "add" in epilogue else None
    expected = numpy_conv(x, made.constants[0], stride, side // 2, epilogue, bias)
    is_right(layer, donor(), [x], expected)


def test_convolutions_with_channels_last() -> None:
    """Their reduction runs over channels last, and fits one that runs over them first."""
    entry = next(r for r in small_of_each_class() if r["key"].startswith("1b524a"))
    dag, _ = dag_of(entry)
    assert dag.stages[3].label == "conv2d_nhwc"
    log = [read_ansor_line(ansor(steps=entry["steps"]), Source("log", 1))]
    (donor,) = ansor_records(log, lambda _: dag, Counter())
    assert donor.ops == ("nn.conv2d", "add", "add", "nn.relu")
    layer = conv_layer(12, 24, 14, 3, 1, ("add", "relu"))
    made = program(layer)
    schedule = donor.template().apply(made.workload.function, HOST)
    update = schedule.get_sblock("conv2d_nchw_update")
    names = [str(schedule.get(loop).loop_var.name) for loop in schedule.get_loops(update)]
    # Rows, columns and channels from the outside in, as in the record.
    assert [n for n in names if n.startswith("r")] == [
        "ry_0", "rx_0", "rc_0", "ry_1", "rx_1", "rc_1",
    ]  # fmt: skip
    x = array(0, 1, 12, 14, 14)
    expected = numpy_conv(x, made.constants[0], 1, 1, ("add", "relu"), made.constants[1])
    got = run(schedule.mod["main"], [x, *made.constants], expected.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_pools() -> None:
    def largest(emit: Any, x: Any) -> Any:
        return relax.op.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1))

    (layer,) = layers_of(largest, x=(1, 10, 13, 13))
    x = array(0, 1, 10, 13, 13)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    for donor in (task("max_pool2d", padded=True), task("max_pool2d", padded=False)):
        is_right(layer, donor, [x], windows.max((4, 5)))

    (layer,) = layers_of(lambda _, x: relax.op.nn.avg_pool2d(x, (5, 5)), x=(1, 6, 5, 5))
    x = array(1, 1, 6, 5, 5)
    is_right(layer, task("avg_pool2d"), [x], x.astype("float64").mean((2, 3), keepdims=True))


def test_times_of_another_layout_promise_nothing() -> None:
    made = program(conv_layer(12, 24, 13)).workload.function
    (blocked, *_) = transferred(made, donors(task("conv2d_NCHWc_add_nn_relu")), HOST)
    assert blocked.predicted_s == np.inf
    (layer,) = layers_of(lambda _, x: relax.op.nn.softmax(x), x=(3, 50))
    (alike, *_) = transferred(program(layer).workload.function, donors(task("softmax")), HOST)
    assert alike.predicted_s == pytest.approx(task("softmax").records[0].median * 3 * 50 / 1000)


def test_softmax() -> None:
    (layer,) = layers_of(lambda _, x: relax.op.nn.softmax(x), x=(3, 50))
    x = array(0, 3, 50)
    powers = np.exp(x.astype("float64"))
    is_right(layer, task("softmax"), [x], powers / powers.sum(1, keepdims=True))


def test_on_its_own_shape_it_is_the_replay() -> None:
    """All loops, marks and predicates, of one record of every fourth task."""
    for of in tasks()[::4]:
        (record,) = ansor_records(of.records[-1:], lambda _, of=of: of.dag, Counter())
        steps = parse_steps(of.records[-1].steps)
        expected = replay_steps(of.dag, with_vector_loops(of.dag, steps) or steps).schedule
        found = record.template().apply(record.function, HOST).mod["main"]
        plain = found.without_attr("tvm_ext.ops").without_attr("global_symbol")
        wanted = expected.mod["main"]
        if wanted.attrs is not None and "global_symbol" in wanted.attrs:
            wanted = wanted.without_attr("global_symbol")
        tvm.ir.assert_structural_equal(plain, wanted)


def test_the_fastest_are_kept_and_known_by_class_and_cpu() -> None:
    of = task("conv2d_NCHWc_add_nn_relu", padded=True)
    records = donors(of)
    assert [r.seconds for r in records] == sorted(r.median for r in of.records)[:3]
    assert {(r.ops, r.target, r.workload) for r in records} == {
        (CONV, "skylake-avx512", records[0].workload)
    }
    (first, *_) = ranked(donor_function(of.dag), records)
    assert first == records[0]


def test_a_vector_loop_of_one_step_is_widened() -> None:
    of, number = next(
        (of, number)
        for of in tasks()
        for number, record in enumerate(of.records)
        if with_vector_loops(of.dag, parse_steps(record.steps)) is not None
    )
    (found,) = ansor_records([of.records[number]], lambda _: of.dag, Counter())
    scheduled = found.template().apply(found.function, HOST).mod.script()
    before = replay(of.dag, of.records[number].steps).schedule.mod.script()
    assert "vectorized(1)" in before
    assert scheduled.count("vectorized(1)") < before.count("vectorized(1)")


def test_what_cannot_be_used_is_counted_by_its_reason(tmp_path: Path) -> None:
    of = task("softmax")
    broken = [["SP", 99, 0, 8, [4], 1]]
    log = with_tasks(
        tmp_path / "log.json", [of],
        *(line(of, number) for number in range(5)),
        line(of, error=4), line(of, target=CUDA), line(of, key=KEY), b"{torn\n",
        line(of, steps=broken, seconds=[1e-9]),
    )  # fmt: skip
    skipped: Counter[str] = Counter()
    found = log_records(log, skipped)
    assert len(found) == 2
    assert skipped == {
        ansor_donors.SLOWER: 3,
        "its measurement failed": 1,
        "measured on a GPU": 1,
        "computation: no text is known for this hash with these shapes": 1,
        "truncated line": 1,
        "replay: there is no stage 99; allowed: 0 to 4": 1,
    }


def test_computations_beside_the_log_or_shipped(tmp_path: Path) -> None:
    assert tasks_file(tmp_path / "a.json") == tmp_path / "a.tasks.json"
    assert tasks_file(tmp_path / "a.json.gz") == tmp_path / "a.tasks.json"
    of, skipped = task("softmax"), Counter[str]()
    assert len(log_records(write(tmp_path / "alone.json", line(of)), skipped)) == 1
    assert not skipped


def test_every_shipped_computation_is_a_donor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ansor_donors, "KEPT", 1)
    skipped: Counter[str] = Counter()
    found = ansor_donors.shipped_donors(skipped)
    # Some computations are of both networks.
    assert len(found) == len({t.workload for t in tasks()}) >= 70
    assert skipped == {ansor_donors.SLOWER: sum(len(t.records) for t in tasks()) - len(found)}
    assert {r.ops for r in found} >= {CONV, ("nn.max_pool2d",), ("nn.softmax",)}
