"""The parts of cost models that schedules share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules.kernels import NEON
from tvm_ext.schedules import costs
from tvm_ext.target import CpuTarget

ONE, FOUR = replace(NEON, cores=1), replace(NEON, cores=4)


def test_busy_cores_counts_the_last_round() -> None:
    assert [costs.busy_cores(tasks, FOUR) for tasks in (1, 4, 5, 8)] == [1, 4, 2.5, 4]


def test_only_several_cores_are_started() -> None:
    assert costs.fork(1) == 0
    assert costs.fork(2) == costs.fork(4) == costs.FORK_SECONDS


def test_large_copies_are_shared_out_where_there_are_cores() -> None:
    assert [costs.copies_in_parallel(n, FOUR) for n in (1 << 10, 1 << 30)] == [False, True]
    assert not costs.copies_in_parallel(1 << 30, ONE)


@pytest.mark.parametrize("target", [ONE, FOUR], ids=["one core", "four cores"])
def test_copies_take_the_bandwidth_of_their_cores(target: CpuTarget) -> None:
    alone = costs.copy_cost(1 << 20, False, target)
    assert alone == (1 << 20) / target.memory_bandwidth
    shared = costs.copy_cost(1 << 20, True, target)
    assert shared == (alone if target is ONE else pytest.approx(alone / 1.5 + costs.FORK_SECONDS))


def test_overlapped_times_lie_between_the_longer_and_the_sum() -> None:
    assert costs.overlapped(2.0, 1.0) == costs.overlapped(1.0, 2.0) == pytest.approx(2.3)
    assert costs.overlapped(2.0, 0.0) == 2.0
