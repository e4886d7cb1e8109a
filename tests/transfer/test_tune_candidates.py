"""Which schedules of others are tried, and in which order."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import tvm

from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, matmul_layer, program, record
from tvm_ext.schedules.tuned import apply_trace
from tvm_ext.transfer.tune_candidates import distance, in_turns, ranked, transferred

TARGET = conv(8, 16, 8, 3).workload.function
NEAR, FAR = record(conv(8, 16, 9, 3), 9e-6), record(conv(16, 32, 16, 3), 1e-6)
BARE = record(conv(8, 16, 8, 3, 1, ()), 1e-9)
PRODUCT = record(program(matmul_layer()), 1e-9)


def test_the_class_comes_first_then_the_nearest_shape() -> None:
    assert ranked(TARGET, [BARE, FAR, PRODUCT, NEAR]) == [NEAR, FAR, BARE]


def test_failed_ones_and_slow_ones_of_a_kernel_are_left_out() -> None:
    same = [replace(NEAR, trace=str(i), seconds=float(i)) for i in (5, 3, 1, 2, 4)]
    failed = replace(FAR, seconds=math.inf)
    assert [r.seconds for r in ranked(TARGET, [*same, failed])] == [1, 2, 3]


def test_candidates_are_complete_schedules_without_repeats() -> None:
    found = list(transferred(TARGET, [FAR, NEAR, NEAR, PRODUCT], HOST))
    assert 2 <= len(found) <= 4
    assert len({c.trace for c in found}) == len(found)
    for candidate in found:
        again = apply_trace(TARGET, candidate.trace)
        tvm.ir.assert_structural_equal(again, candidate.mod["main"])
    # 9x9 pixels against 8x8; four times the channels and four times the pixels.
    assert found[0].predicted_s == pytest.approx(9e-6 * 64 / 81)
    assert found[-1].predicted_s == pytest.approx(1e-6 / 16)


def test_the_own_record_comes_back_as_it_is() -> None:
    own = record(conv(8, 16, 8, 3), 1e-6, 0)
    (candidate,) = transferred(TARGET, [own], HOST)
    assert candidate.trace == own.trace
    assert candidate.predicted_s == 1e-6


def test_a_record_that_is_no_trace_is_no_candidate() -> None:
    assert list(transferred(TARGET, [replace(NEAR, trace="[[], 1]")], HOST)) == []


def test_distance() -> None:
    assert distance((1, 8), (1, 8)) == 0
    assert distance((2, 8), (4, 4)) == pytest.approx(2 * math.log(2))


def test_in_turns() -> None:
    assert list(in_turns([iter("abc"), iter("x"), iter("")])) == [
        (0, "a"), (1, "x"), (0, "b"), (0, "c"),
    ]  # fmt: skip
