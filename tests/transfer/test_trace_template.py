"""Traces on kernels of other shapes and epilogues."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import tvm

from tests.passes.relax_models import array
from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, matmul_layer, numpy_conv, program, run
from tvm_ext.errors import TransferError
from tvm_ext.schedules.tuned import apply_trace, trace_text
from tvm_ext.transfer.trace_template import TraceTemplate
from tvm_ext.transfer.trace_template_stages import Stages
from tvm_ext.transfer.tune_space import tune_context

# channels, filters, size, kernel, stride, epilogue
KERNELS: dict[str, tuple[Any, ...]] = {
    "itself": (8, 16, 8, 3, 1, ("add", "relu")),
    "odd": (12, 24, 13, 3, 1, ("add", "relu")),
    "1x1": (16, 32, 7, 1, 1, ("add", "relu")),
    "stride 2": (3, 16, 15, 3, 2, ("add", "relu")),
    "bare": (8, 16, 8, 3, 1, ()),
    "relu": (8, 20, 8, 3, 1, ("relu",)),
    "sigmoid": (8, 16, 9, 3, 1, ("add", "sigmoid")),
    "longer": (8, 16, 8, 3, 1, ("add", "relu", "add")),
}


@cache
def sketches(kernel: str) -> list[TraceTemplate]:
    """Templates of all schedules that MetaSchedule draws for a kernel."""
    function = conv(*KERNELS[kernel]).workload.function
    spaces = tune_context(function, HOST).generate_design_space()
    return [TraceTemplate.of(s.trace, function) for s in spaces]


@pytest.mark.parametrize("kernel", KERNELS)
def test_schedules_of_three_kernels_fit_and_are_right(kernel: str) -> None:
    """Of one of the same class, of one without an epilogue, and of one with another."""
    channels, _, size, side, stride, epilogue = KERNELS[kernel]
    made = conv(*KERNELS[kernel])
    x = array(0, 1, channels, size, size)
    bias = made.constants[1] if "add" in epilogue else None
    expected = numpy_conv(x, made.constants[0], stride, side // 2, epilogue, bias)
    turn = list(KERNELS).index(kernel)
    templates = [sketches(name)[turn % 3] for name in ("itself", "bare", "relu")]
    for number, template in enumerate(templates):
        rule = ("tiles", "shares")[(number + turn) % 2]
        schedule = template.apply(made.workload.function, HOST, rule)
        found = run(schedule.mod["main"], [x, *made.constants], expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_new_trace_stands_alone() -> None:
    function = conv(*KERNELS["odd"]).workload.function
    schedule = sketches("bare")[-1].apply(function, HOST)
    again = apply_trace(function, trace_text(schedule.trace))
    tvm.ir.assert_structural_equal(again, schedule.mod["main"])


def test_perfect_tiles_are_rescaled_and_other_decisions_kept() -> None:
    template = sketches("itself")[0]
    function = conv(16, 32, 16, 3).workload.function
    old, new = (t.as_json()[1] for t in (template.trace, template.apply(function, HOST).trace))
    assert [at for at, _ in old] == [at for at, _ in new]
    extents = iter((1, 32, 16, 16, 16, 3, 3))
    for (_, before), (_, after) in zip(old, new, strict=True):
        if isinstance(before, list):
            assert np.prod(after) == next(extents)
            assert after[-1] == before[-1]
        else:
            assert after == before


def test_the_last_epilogue_block_is_fused_into_the_tiles() -> None:
    """The epilogue leaves no loop nest of its own where the trace caches the result."""
    function = conv(*KERNELS["sigmoid"]).workload.function
    blocks = [
        len(s.get_child_blocks(s.get_sblock("root")))
        for s in (t.apply(function, HOST) for t in sketches("bare"))
    ]
    # Without padding: the anchor's start value, the anchor, and at most one block after it.
    assert min(blocks) <= 4


def test_other_loops_are_refused() -> None:
    function = program(matmul_layer()).workload.function
    expected = "NT_matmul|matmul has the loops SSR; the schedule is for conv2d_nchw with SSSSRRR"
    with pytest.raises(TransferError, match=expected):
        sketches("bare")[0].apply(function, HOST)
    with pytest.raises(TransferError, match="tile rule 'ratio'; allowed: tiles, shares"):
        sketches("bare")[0].apply(function, HOST, "ratio")


def test_a_refused_instruction_is_named() -> None:
    function = conv(*KERNELS["itself"]).workload.function
    template = TraceTemplate.of(
        sketches("itself")[0].trace, conv(*KERNELS["itself"]).workload.function
    )
    broken = TraceTemplate(template.trace, Stages((), "conv2d_nchw", (), "SSSSRRR", (1,) * 7))
    # It knows of no padding block, so the padding is inlined, and then not found.
    with pytest.raises(TransferError, match="GetSBlock: Cannot find a block with the name"):
        broken.apply(function, HOST)


def test_stages() -> None:
    stages = Stages.of(conv(*KERNELS["longer"]).workload.function)
    assert stages.prologue == ("pad_temp",)
    assert stages.anchor == "conv2d_nchw"
    assert len(stages.epilogue) == 3
    assert stages.extents == (1, 16, 8, 8, 8, 3, 3)
    bare = Stages.of(program(matmul_layer(4, 5, 6)).workload.function)
    assert (bare.prologue, bare.epilogue) == ((), ())
    assert (bare.loops, bare.extents) == ("SSR", (4, 5, 6))
