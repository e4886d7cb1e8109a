"""Which prologues are taken, by which algorithms, and the form of their constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules.kernels import HOST, NEON
from tests.schedules.oracles import conv_workload
from tests.schedules.prologues import constants_of, with_prologue, with_sigmoid
from tvm_ext.schedules import conv_prologue, emit
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Epilogue, Operand
from tvm_ext.schedules.strided_view import StridedView

PLAIN = conv_workload(10, (7, 7), 16, 3, 1, 1)


def test_constants_are_flat_and_fill_whole_vectors() -> None:
    w = with_prologue(PLAIN)
    packed = conv_prologue.pack_constants(w, NEON, constants_of(w))
    for constant, got in zip(constants_of(w), packed, strict=True):
        assert (got.shape, got.dtype) == ((12,), "float32")
        np.testing.assert_array_equal(got[:10], constant.ravel())
        assert not got[10:].any()


def test_arguments_have_the_shape_of_what_is_packed() -> None:
    def body(w: object, declared: list[object]) -> None:
        declared += conv_prologue.declare_constants(w, NEON)

    for w, count in ((with_prologue(PLAIN), 2), (with_sigmoid(PLAIN), 0), (PLAIN, 0)):
        declared: list[object] = []
        emit.build(lambda w=w, declared=declared: body(w, declared))
        assert [tuple(x.shape) for x in declared] == [(12,)] * count


def test_expensive_functions_take_longer() -> None:
    nothing, cheap, dear = (
        conv_prologue.prologue_seconds(w, 4096, NEON)
        for w in (PLAIN, with_prologue(PLAIN), with_sigmoid(PLAIN))
    )
    assert nothing == 0 < cheap < dear


@pytest.mark.parametrize(
    ("operand", "reason"),
    [
        (Operand((1, 10, 7, 7), "float32"), "float32 of shape (1, 10, 7, 7)"),
        (Operand((1, 1, 1, 1), "float32"), "float32 of shape (1, 1, 1, 1)"),
        (Operand((1, 10, 1, 1), "int32"), "int32 of shape (1, 10, 1, 1)"),
        (
            Operand((1, 10, 1, 1), "float32", StridedView.contiguous((1, 10, 1, 1)), 10),
            "float32 of shape (1, 10, 1, 1)",
        ),
    ],
    ids=["every element", "number", "integers", "view"],
)
def test_only_constants_of_channels_are_operands(operand: Operand, reason: str) -> None:
    assert conv_prologue.supports_prologue(PLAIN)
    assert conv_prologue.supports_prologue(with_prologue(PLAIN))
    w = replace(PLAIN, prologue=Epilogue((), (operand,)))
    expected = (
        f"operand 0 of the prologue: {reason}; only float32 of shape (1, 10, 1, 1), stored so"
    )
    assert conv_prologue.supports_prologue(w).reason == expected


def test_the_input_is_the_only_value_before_the_first_step() -> None:
    w = replace(PLAIN, prologue=Epilogue((), results=2))
    reason = conv_prologue.supports_prologue(w).reason
    assert reason == "prologue.results is 2; only 1, the input"


@pytest.mark.parametrize("groups", [1, 8])
def test_others_refuse(groups: int) -> None:
    w = conv_workload(8, (9, 9), 8, 3, 1, 1, groups=groups)
    able = {n: a for n, a in algorithms(w).items() if a.supports(w, HOST)}
    assert "depthwise" in able if groups > 1 else "winograd_4x4" in able
    reasons = {n: a.supports(with_prologue(w), HOST).reason for n, a in able.items()}
    assert {n for n, reason in reasons.items() if not reason} <= {"spatial_pack"}
    assert set(reasons.values()) <= {"a prologue", ""}
