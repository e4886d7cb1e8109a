"""Operands whose elements are repeated over neighbouring positions, against np.repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules import oracles, pooled_convolutions
from tests.schedules.chains import chain
from tests.schedules.kernels import HOST, TARGETS, Case, assembly, fma_lines, run_all
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.conv_workload import ConvTransposeWorkload
from tvm_ext.schedules.epilogue import Operand, Step
from tvm_ext.schedules.workload import ElementwiseWorkload, PoolWorkload

V = HOST.lanes


def repeated(x: np.ndarray, operand: Operand) -> np.ndarray:
    """What the output reads."""
    for axis, factor in enumerate(operand.factors):
        x = x.repeat(factor, axis)
    return x


def with_repeats(w: Any, *factors: int) -> Any:
    """The workload with an epilogue: relu(result + bias + residual), the residual enlarged."""
    shape = w.conv_shape if hasattr(w, "conv_shape") else w.out_shape
    repeat = (1, 1, *factors)
    small = tuple(n // f for n, f in zip(shape, repeat, strict=True))
    assert tuple(n * f for n, f in zip(small, repeat, strict=True)) == shape
    w = oracles.with_residual(w) if w.out_shape == shape else pooled_convolutions.with_sums(w)
    bias, _ = w.epilogue.operands
    operands = (bias, Operand(small, "float32", repeat=repeat))
    return replace(w, epilogue=replace(w.epilogue, operands=operands))


def finished(result: np.ndarray, w: Any, operands: list[np.ndarray]) -> np.ndarray:
    seen = [repeated(x, o) for x, o in zip(operands, w.epilogue.operands, strict=True)]
    return oracles.finished(result, w, seen)


def conv_case(
    name: str, w: Any, factors: tuple[int, ...], layout: tuple[int, int], **params: Any
) -> tuple[Case, np.ndarray]:
    w = with_repeats(w, *factors)
    data, operands = oracles.random(w.in_shape, 1), oracles.operands_of(w)
    weight = oracles.random((w.out_channels, w.in_channels // w.groups, *w.kernel), 2)
    # The lanes past a depthwise convolution's last channel go from its input to its result.
    missing = 0.0 if w.groups > 1 else np.nan
    made = Case(name, w, [data], [weight], operands, layout, params=params, missing=missing)
    return made, finished(oracles.conv(w, data, weight), w, operands)


# Odd sizes, several batches, rows of positions, dimensions that are broadcast before they repeat.
CONVOLUTIONS = {
    "3x3": (conv_workload(5, (14, 18), 2 * V + 3, 3, 1, 1), (2, 2)),
    "3x3, thirds, batch": (conv_workload(V, (9, 15), V + 1, 3, 1, 1, batch=2), (3, 3)),
    "3x3, rows": (conv_workload(V, (10, 7), V, 3, 1, 1, batch=2), (2, 1)),
    "1x1": (conv_workload(7, (6, 10), V + 2, 1, batch=2), (2, 2)),
    "1x1, columns": (conv_workload(V, (7, 12), 2 * V, 1), (1, 3)),
    "1x1, strided": (conv_workload(V, (11, 11), V, 1, 2), (2, 3)),
    "3x3, from one row": (conv_workload(V, (4, 10), V, 3, 1, 1), (4, 2)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "layouts"),
    [
        ("spatial_pack", [(V, V)]),
        ("conv_gemm", [(V, V), (0, V)]),
        ("conv_direct", [(0, 0)]),
        ("gspc", [(0, 0)]),
        ("winograd_2x2", [(V, V)]),
        ("winograd_4x4", [(V, V)]),
    ],
)
def test_convolutions(name: str, layouts: list[tuple[int, int]]) -> None:
    cases: Mapping[object, Any] = {
        (key, layout): conv_case(name, w, factors, layout)
        for key, (w, factors) in CONVOLUTIONS.items()
        for layout in layouts
        if not name.startswith("winograd") or (w.kernel == (3, 3) and "1x1" not in key)
    }
    oracles.agree(cases, 1e-4)


def test_depthwise() -> None:
    shapes = {
        "halves": (conv_workload(V + 3, (10, 14), V + 3, 3, 1, 1, groups=V + 3), (2, 2)),
        "thirds": (conv_workload(V, (9, 6), V, 5, 1, 2, groups=V, batch=2), (3, 2)),
    }
    oracles.agree({k: conv_case("depthwise", w, f, (V, V)) for k, (w, f) in shapes.items()}, 1e-5)


def test_transposed_convolution() -> None:
    w = ConvTransposeWorkload(
        2, 4, (5, 7), 6, (2, 2), (2, 2), (0, 0), (0, 0), (1, 1), (0, 0), 1
    )  # fmt: skip
    w = with_repeats(w, 2, 2)
    data, weight = oracles.random(w.in_shape, 1), oracles.random((4, 6, 2, 2), 2)
    operands = oracles.operands_of(w)
    case = Case("conv_transpose", w, [data], [weight], operands)
    want = finished(oracles.conv_transpose(w, data, weight), w, operands)
    oracles.agree({"2x2": (case, want)}, 1e-5)


@pytest.mark.parametrize("block", [0, V])
def test_pools(block: int) -> None:
    w = PoolWorkload(
        "max", (2, V + 1, 8, 12), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), (2, V + 1, 8, 12)
    )  # fmt: skip
    w = with_repeats(w, 2, 3)
    data, operands = oracles.random(w.shape, 1), oracles.operands_of(w)
    case = Case("pool", w, [data], [], operands, (block, block))
    oracles.agree({block: (case, finished(oracles.pool(w, data), w, operands))}, 1e-6)


@pytest.mark.parametrize(
    ("name", "layout"),
    [("spatial_pack", (V, V)), ("winograd_4x4", (V, V)), ("conv_direct", (0, 0))],
)
def test_before_a_pool_stage(name: str, layout: tuple[int, int]) -> None:
    plane = conv_workload(V, (12, 16), V, 3, 1, 1)
    cases = {}
    for key in pooled_convolutions.FEW:
        w = with_repeats(pooled_convolutions.stages(plane)[key], 2, 2)
        data, weight = oracles.random(w.in_shape, 1), oracles.random((V, V, 3, 3), 2)
        operands = oracles.operands_of(w)
        seen = [repeated(x, o) for x, o in zip(operands, w.epilogue.operands, strict=True)]
        want = pooled_convolutions.expected(w, data, weight, seen)
        cases[key] = (Case(name, w, [data], [weight], operands, layout), want)
    oracles.agree(cases, 1e-4)


def sum_of(shape: tuple[int, ...], *operands: Operand) -> ElementwiseWorkload:
    args = [("operand", j) for j in range(len(operands))]
    steps = [
        Step("add", (("value", j - 1) if j else args[0], args[j + 1])) for j in range(len(args) - 1)
    ]
    return chain(shape, steps, operands)


@pytest.mark.parametrize("block", [0, V])
def test_elementwise(block: int) -> None:
    """Operands with the same and with different factors, of one channel, on every row length."""
    cases = {}
    for width in (1, 2, 5, V, 2 * V + 1, 33):
        for factors in ((2, 2), (3, 3), (2, 1), (1, 2), (4, 6), (2, 16), (1, 24)):
            shape = (2, V + 3, 3 * factors[0], width * factors[1])
            operands = [
                Operand(shape, "float32"),
                Operand((2, V + 3, 3, width), "float32", repeat=(1, 1, *factors)),
                Operand((1, 1, 3, 1), "float32", repeat=(1, 1, factors[0], 1)),
            ]
            w = sum_of(shape, *operands)
            data = oracles.operands_of(w)
            want = sum(repeated(x, o) for x, o in zip(data, operands, strict=True))
            for params in ({}, {"tasks": 8, "vectors": 1}):
                case = Case("elementwise", w, operands=data, layout=(block, block), params=params)
                cases[(width, factors, str(params))] = (case, want)
    oracles.agree(cases, 1e-6)


def test_elementwise_reads_two_enlargements_at_once() -> None:
    shape = (1, 3, 12, 36)
    operands = [
        Operand((1, 3, 12 // f, 36 // f), "float32", repeat=(1, 1, f, f)) for f in (2, 3, 12)
    ]
    w = sum_of(shape, *operands)
    data = oracles.operands_of(w)
    want = sum(repeated(x, o) for x, o in zip(data, operands, strict=True))
    (got,) = run_all([Case("elementwise", w, operands=data)])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_other_targets_still_multiply_in_their_widest_vectors(target: str) -> None:
    lanes = TARGETS[target].lanes
    w = with_repeats(conv_workload(16, (16, 16), 2 * lanes, 3, 1, 1), 2, 2)
    width = "zmm" if target == "avx512" else ".4s"
    for name, layout in (("spatial_pack", (lanes, lanes)), ("conv_direct", (0, 0))):
        assert any(width in line for line in fma_lines(assembly(name, w, TARGETS[target], layout)))


@pytest.mark.parametrize(("target", "add"), [("avx512", "vaddps"), ("neon", "fadd")])
def test_a_plain_row_is_added_in_vectors(target: str, add: str) -> None:
    shape = (1, 3, 64, 192)
    for factor in (2, 3):
        small = Operand((1, 3, 64, 192 // factor), "float32", repeat=(1, 1, 1, factor))
        text = assembly(
            "elementwise", sum_of(shape, Operand(shape, "float32"), small), TARGETS[target]
        )
        width = "zmm" if target == "avx512" else ".4s"
        assert any(add in line and width in line for line in text.splitlines())
