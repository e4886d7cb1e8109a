"""What is measured: the probes compute what they claim, and the rates are those of a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules.kernels import HOST
from tvm_ext.schedules import peak

STEPS, CHAINS = 20_000, 12


def test_fma_chains_run_all_their_steps() -> None:
    """x / 2 + 1/4 has the fixed point 1/2, and each step of it is one multiply-add."""
    probe = peak.fma_probe(HOST)
    assert probe.work == 2 * STEPS * CHAINS * HOST.lanes
    probe.module["main"](*probe.tensors)
    np.testing.assert_array_equal(probe.tensors[-1].numpy(), np.full((CHAINS, HOST.lanes), 0.5))


def test_all_of_the_array_is_read_and_no_cache_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    probes: list[peak.Probe] = []

    def rate(probe: peak.Probe, repeats: int) -> float:
        probes.append(probe)
        return probe.work

    monkeypatch.setattr(peak.Probe, "rate", rate)
    size = peak.measure_memory_bandwidth(HOST)
    data, sums = probes[0].tensors
    assert size == data.numpy().nbytes >= 2 * HOST.l3
    probes[0].module["main"](data, sums)
    # Ones, so that each sum counts the elements that it has read.
    assert sums.numpy().sum(dtype="float64") == data.numpy().size


def test_rates_are_plausible() -> None:
    """Between a tenth of a multiply-add and four vectors of them a cycle, at 1 to 7 GHz."""
    assert 0.2e9 < peak.measure_fma_peak(HOST) < 8 * HOST.lanes * 7e9
    assert 1e8 < HOST.memory_bandwidth < 2e12


def test_a_rate_is_work_over_the_best_time() -> None:
    class Timer:
        min = 0.25

    class Module:
        def time_evaluator(self, name: str, device: object, number: int, repeat: int) -> object:
            assert (name, number, repeat) == ("main", 1, 3)
            return lambda *tensors: Timer()

    assert peak.Probe(Module(), [], 100.0).rate(3) == 400.0
