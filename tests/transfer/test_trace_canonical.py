"""Traces by constants and names in the form that fits other functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from tests.passes.relax_models import array
from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, matmul_layer, program, run
from tvm_ext.errors import TransferError
from tvm_ext.schedules.tuned import apply_trace, trace_text
from tvm_ext.transfer.trace_canonical import canonical
from tvm_ext.transfer.trace_template import TraceTemplate

FUNCTION = conv(4, 8, 10, 3).workload.function
PRODUCT = program(matmul_layer(12, 8, 24)).workload.function


def fresh(function: Any) -> Schedule:
    return Schedule(tvm.IRModule({"main": function}))


def by_hand() -> Schedule:
    """Constants, names of blocks that were made, and queries that nothing uses."""
    schedule = fresh(FUNCTION)
    schedule.get_loops(schedule.get_sblock("pad_temp"))
    schedule.cache_write(schedule.get_sblock("conv2d_nchw"), 0, "global")
    _, filters, _, columns = schedule.get_loops(
        schedule.get_sblock("conv2d_nchw_intermediate_global")
    )
    outer, _ = schedule.split(filters, [None, 2])
    schedule.vectorize(schedule.split(columns, [5, 2])[1])
    schedule.compute_at(schedule.get_sblock("conv2d_nchw"), outer, preserve_unit_loops=True)
    return schedule


def kinds(trace: Trace) -> list[str]:
    return [str(i.kind.name) for i in trace.insts]


def tiles(trace: Trace) -> list[list[int]]:
    return [[int(factor) for factor in decision] for _, decision in trace.as_json()[1]]


def test_the_schedule_is_the_same_and_has_no_constants() -> None:
    schedule = by_hand()
    trace = canonical(schedule.trace, FUNCTION)
    again = fresh(FUNCTION)
    trace.apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(again.mod, schedule.mod)
    tvm.ir.assert_structural_equal(apply_trace(FUNCTION, trace_text(trace)), schedule.mod["main"])
    assert kinds(trace) == [
        "GetSBlock", "CacheWrite", "GetLoops", "SamplePerfectTile", "Split", "SamplePerfectTile",
        "Split", "Vectorize", "GetSBlock", "ComputeAt",
    ]  # fmt: skip
    assert tiles(trace) == [[4, 2], [5, 2]]


def test_it_is_its_own_form() -> None:
    once = canonical(by_hand().trace, FUNCTION)
    assert trace_text(canonical(once, FUNCTION)) == trace_text(once)


def test_an_rfactor_is_kept() -> None:
    schedule = fresh(PRODUCT)
    anchor = schedule.get_child_blocks(schedule.get_sblock("root"))[-1]
    name = str(schedule.get(anchor).name_hint)
    *_, reduction = schedule.get_loops(anchor)
    outer, _ = schedule.split(reduction, [None, 4])
    schedule.rfactor(outer, 2)
    schedule.parallel(schedule.get_loops(schedule.get_sblock(f"{name}_rf"))[0])
    schedule.parallel(schedule.get_loops(schedule.get_sblock(name))[0])
    trace = canonical(schedule.trace, PRODUCT)
    again = apply_trace(PRODUCT, trace_text(trace))
    tvm.ir.assert_structural_equal(again, schedule.mod["main"])
    other = program(matmul_layer(10, 6, 14))
    fitted = TraceTemplate.of(trace, PRODUCT).apply(other.workload.function, HOST)
    # Of the divisors of 14, 7 is nearest to 4 in ratio.
    assert tiles(fitted.trace) == [[2, 7]]
    x = array(0, 10, 14)
    expected = x.astype("float64") @ other.constants[0]
    found = run(fitted.mod["main"], [x, *other.constants], expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_split_that_does_not_divide_stays_on_its_own_shape() -> None:
    schedule = fresh(PRODUCT)
    anchor = schedule.get_child_blocks(schedule.get_sblock("root"))[-1]
    rows, *_ = schedule.get_loops(anchor)
    schedule.parallel(schedule.split(rows, [None, 5])[0])
    trace = canonical(schedule.trace, PRODUCT)
    assert kinds(trace) == [
        "GetSBlock", "GetChildBlocks", "GetLoops", "Split", "Parallel",
    ]  # fmt: skip
    tvm.ir.assert_structural_equal(apply_trace(PRODUCT, trace_text(trace)), schedule.mod["main"])
    # On another one it becomes a divisor, without a predicate.
    other = program(matmul_layer(14, 8, 24)).workload.function
    fitted = TraceTemplate.of(trace, PRODUCT).apply(other, HOST)
    assert "T.where" not in fitted.mod.script()
    assert "T.where" in schedule.mod.script()


def test_a_trace_of_another_function_is_refused() -> None:
    with pytest.raises(TransferError, match="GetSBlock: Cannot find a block"):
        canonical(by_hand().trace, PRODUCT)
