"""Statistics on fake engines and a fake clock, the error measure, the thread pool's size."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness


class Clock:
    """A clock that only engines and sleeps move."""

    def __init__(self):
        self.now = 0.0
        self.log = []

    def engine(self, name, times):
        """Make an engine whose n-th call takes times[n] seconds, the last one for ever."""
        calls = iter(range(10**6))

        def call():
            self.log.append(name)
            self.now += times[min(next(calls), len(times) - 1)]

        return call

    def sleep(self, seconds):
        self.log.append(seconds)
        self.now += seconds

    def compare(self, engines, **options):
        return harness.compare(engines, timer=lambda: self.now, sleep=self.sleep, **options)


def test_engines_are_interleaved_with_a_sleep_and_an_untimed_call_before_each():
    clock = Clock()
    engines = {"a": clock.engine("a", [1.0]), "b": clock.engine("b", [2.0])}
    clock.compare(engines, rounds=2, warmup=1, min_time_s=2.0, settle_s=0.5)
    turn_a, turn_b = [0.5, "a", "a", "a"], [0.5, "b", "b"]
    assert clock.log == ["a", "b", *turn_a, *turn_b, *turn_a, *turn_b]


def test_warmup_and_the_call_after_a_sleep_are_not_timed():
    clock = Clock()
    engine = clock.engine("a", [100.0, 50.0, 1.0])
    result = clock.compare({"a": engine}, rounds=1, warmup=1, min_time_s=0.0)
    assert result.seconds == {"a": (1.0,)}


def test_a_round_counts_the_median_call():
    clock = Clock()
    engine = clock.engine("a", [9.0, 1.0, 8.0, 2.0])
    result = clock.compare({"a": engine}, rounds=1, warmup=0, min_time_s=10.5)
    # Timed: 1, 8, 2, and the total passes 10.5 at the third.
    assert result.seconds["a"] == (2.0,)


def test_percentiles_and_ratios_by_hand():
    result = harness.Result({"a": (1.0, 2.0, 30.0), "b": (2.0, 8.0, 3.0)})
    assert result.median("a") == 2.0
    assert result.median("b") == 3.0
    assert result.p10("a") == pytest.approx(1.2)
    assert result.p90("a") == pytest.approx(24.4)
    # Per round 0.5, 0.25, 10: not the ratio of the medians, 0.667.
    assert result.ratio("a", "b") == 0.5
    assert result.ratios() == {("a", "b"): 0.5, ("b", "a"): 2.0}


@pytest.mark.parametrize(
    ("engines", "rounds", "message"),
    [({}, 1, "at least one engine"), ({"a": int}, 0, "rounds is 0")],
)
def test_compare_refuses(engines, rounds, message):
    with pytest.raises(ValueError, match=message):
        harness.compare(engines, rounds=rounds)


def test_geometric_mean():
    assert harness.geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)


def test_max_relative_error_is_scaled_by_each_output():
    expected = [np.array([10.0, -20.0]), np.array([0.1, 0.0])]
    actual = [np.array([10.0, -19.0]), np.array([0.1, 0.02])]
    assert harness.max_relative_error(actual, expected) == pytest.approx(0.2)
    assert harness.max_relative_error(actual[0], expected[0]) == pytest.approx(0.05)


def test_max_relative_error_of_zeros_and_of_not_finite_values():
    assert harness.max_relative_error(np.full(3, 0.25), np.zeros(3)) == 0.25
    assert harness.max_relative_error(np.array([np.nan]), np.ones(1)) == np.inf


@pytest.mark.parametrize(
    ("actual", "message"),
    [
        ([np.zeros(2)] * 2, "2 outputs against 1"),
        (np.zeros((2, 1)), r"output 0 has shape \(2, 1\)"),
    ],
)
def test_max_relative_error_refuses(actual, message):
    with pytest.raises(ValueError, match=message):
        harness.max_relative_error(actual, np.zeros(2))


def test_machine_names_what_matters():
    machine = harness.describe_machine()
    assert machine["cpu"]
    assert machine["logical_cpus"] >= 1
    assert machine["versions"]["numpy"] == np.__version__


def run_python(code):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TVM_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(harness.__file__).parents[1],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_tvm_threads_change_in_process_and_do_not_pin_the_caller():
    done = run_python(
        "import os\n"
        "from benchmarks import harness\n"
        "before = os.sched_getaffinity(0)\n"
        "harness.prepare_tvm_threads(2)\n"
        "for count in (1, 2, 1): harness.set_tvm_threads(count)\n"
        "assert os.sched_getaffinity(0) == before\n"
        "harness.set_tvm_threads(3)\n"
    )
    assert "RuntimeError: TVM's pool gives 2 threads, not 3" in done.stderr


def test_prepare_tvm_threads_refuses_when_it_is_too_late():
    done = run_python(
        "import sys, types\n"
        "from benchmarks import harness\n"
        "sys.modules['tvm'] = types.ModuleType('tvm')\n"
        "harness.prepare_tvm_threads(2)\n"
    )
    assert "RuntimeError: prepare_tvm_threads must be called before tvm" in done.stderr
