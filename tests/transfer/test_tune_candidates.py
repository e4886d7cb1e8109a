"""Which schedules of others are tried, and in which order."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import tvm

from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, matmul_layer, program, record
from tvm_ext.errors import TuningError
from tvm_ext.schedules.tuned import apply_trace
from tvm_ext.transfer.trace_template_stages import Stages
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


def test_more_records_of_a_kernel_on_request() -> None:
    many = [replace(NEAR, trace=str(i), seconds=float(i)) for i in range(1, 6)]
    for count, kept in ((1, 1), (4, 4), (9, 5)):
        found = ranked(TARGET, many, records_per_kernel=count)
        assert [r.seconds for r in found] == list(range(1, kept + 1))
    own = [record(conv(8, 16, 8, 3), 1e-6 * (1 + n), n) for n in range(3)]
    assert len({r.trace for r in own}) == 3
    for count in (1, 2, 3):
        assert len(list(transferred(TARGET, own, HOST, records_per_kernel=count))) == count
    with pytest.raises(TuningError, match="records_per_kernel=0; allowed: 1 or more"):
        ranked(TARGET, many, records_per_kernel=0)


def test_blocks_of_channels_count_as_channels() -> None:
    """(1, 2, 9, 8, 8) is (1, 16, 9, 8) in blocks of eight channels."""
    blocked = replace(NEAR, workload="blocked", trace="blocked")
    stages = Stages((), "conv2d_NCHWc", (), "SSSSSRRR", (1, 2, 9, 8, 8, 8, 3, 3))
    blocked.__dict__["stages"] = stages
    # Between 9 by 9 and 16 by 16 pixels for a kernel of 8 by 8, but of another anchor.
    assert ranked(TARGET, [FAR, blocked, NEAR]) == [NEAR, FAR, blocked]
    (loops,) = {blocked.stages.loop_map(Stages.of(TARGET))}
    assert loops is not None
    extents = loops.extents(stages.extents)
    assert distance(Stages.of(TARGET).extents, extents) == pytest.approx(math.log(9 / 8))


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
