"""Instructions on functions that they weren't made for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tvm
from tvm.s_tir import Schedule

from tests.transfer.programs import conv, matmul_layer, program
from tvm_ext.errors import TransferError
from tvm_ext.transfer.trace_kinds import KINDS
from tvm_ext.transfer.trace_run import TraceRun
from tvm_ext.transfer.trace_template_stages import LoopMap, Stages


def product(rows: int, columns: int, depth: int = 8) -> Any:
    return program(matmul_layer(rows, columns, depth)).workload.function


def fresh(function: Any) -> Schedule:
    return Schedule(tvm.IRModule({"main": function}))


def traced(function: Any, edit: Callable[[Schedule, Any], None]) -> Any:
    """The trace of an edit of the function's anchor."""
    schedule = fresh(function)
    edit(schedule, schedule.get_sblock(Stages.of(function).anchor))
    return schedule.trace


def ran(trace: Any, function: Any, *, exact: bool = False, **names: str | None) -> str:
    """The function under the trace."""
    schedule = fresh(function)
    TraceRun(schedule, names, "tiles", LoopMap(), exact).run(trace)
    return str(schedule.mod.script())


def columns_in_vectors(schedule: Schedule, block: Any) -> None:
    schedule.vectorize(schedule.get_loops(block)[1])


def rows_unrolled(schedule: Schedule, block: Any) -> None:
    schedule.unroll(schedule.get_loops(block)[0])


@pytest.mark.parametrize(("columns", "width"), [(64, 64), (65, 13), (96, 16), (127, 1), (63, 63)])
def test_too_long_vector_loops_are_split(columns: int, width: int) -> None:
    trace = traced(product(4, 8), columns_in_vectors)
    assert f"T.vectorized(T.int64({width}))" in ran(trace, product(4, columns))


@pytest.mark.parametrize(("rows", "unrolled"), [(64, True), (65, False)])
def test_too_long_loops_are_not_unrolled(rows: int, unrolled: bool) -> None:
    trace = traced(product(4, 8), rows_unrolled)
    assert (f"T.unroll(T.int64({rows}))" in ran(trace, product(rows, 8))) is unrolled


def test_on_the_same_shape_nothing_is_changed() -> None:
    function = product(100, 100)
    for edit, mark in ((columns_in_vectors, "vectorized"), (rows_unrolled, "unroll")):
        assert f"T.{mark}(T.int64(100))" in ran(traced(function, edit), function, exact=True)


def test_what_is_missing_is_left_out() -> None:
    function = conv(4, 8, 6, 3).workload.function

    def edit(schedule: Schedule, block: Any) -> None:
        padding = schedule.get_sblock("pad_temp")
        schedule.parallel(schedule.fuse(*schedule.get_loops(padding)[:2]))
        outer = schedule.get_loops(schedule.get_sblock("T_add"))[1]
        schedule.compute_at(block, outer, preserve_unit_loops=True)
        schedule.vectorize(schedule.get_loops(block)[-4])
        schedule.unroll(schedule.get_loops(block)[0])

    trace = traced(function, edit)
    text = ran(trace, function, pad_temp=None, T_add=None)
    assert "T.parallel" not in text
    # The block stays outside, and its own loops are still the last ones: those of its columns.
    assert "T.vectorized(T.int64(6))" in text
    assert "T.unroll" not in text


def test_unknown_kinds_are_refused() -> None:
    trace = traced(product(4, 8), lambda s, block: s.blockize(s.get_loops(block)[2]))
    with pytest.raises(TransferError, match="Blockize: no such kind is known; allowed: Add"):
        ran(trace, product(4, 8))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_one_of_tvm(kind: str) -> None:
    """By the name that TVM registers it under."""
    get = tvm.get_global_func("s_tir.schedule.InstructionKindGet")
    assert get(kind).name == kind


def test_loops_of_other_layouts() -> None:
    def stages(loops: str, extents: tuple[int, ...], anchor: str = "a") -> Stages:
        return Stages((), anchor, (), loops, extents)

    plain = stages("SSSSRRR", (1, 64, 7, 9, 32, 3, 5))
    blocked = stages("SSSSSRRR", (1, 4, 7, 9, 16, 32, 3, 5))
    last = stages("SSSSRRR", (1, 7, 9, 64, 3, 5, 32), "conv2d_nhwc")
    for donor, loops in (
        (plain, LoopMap()), (blocked, LoopMap(block=16)), (last, LoopMap(rotated=True)),
    ):  # fmt: skip
        assert donor.loop_map(plain) == loops
        assert loops.extents(donor.extents) == plain.extents
        assert donor.loop_map(donor) == LoopMap()
    assert plain.loop_map(blocked) is None
    assert plain.loop_map(stages("SSR", (1, 2, 3))) is None
    assert stages("SSSR", (2, 3, 4, 5)).loop_map(stages("SSR", (3, 4, 5))) is None
