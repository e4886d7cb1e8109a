"""The kernel of an inverted residual block against numpy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules.kernels import (
    HOST,
    NEON,
    TARGETS,
    Case,
    assembly,
    run_all,
    same_on_any_threads,
)
from tests.schedules.oracles import conv, conv_workload, operands_of, random, with_residual
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.inverted_residual_kernel import Chain

V = HOST.lanes


def _with_steps(w: ConvWorkload) -> ConvWorkload:
    """relu(result + shift) for each channel."""
    steps = (
        Step("add", (("value", 0), ("operand", 0))),
        Step("relu", (("value", 1),)),
    )
    shift = Operand((1, w.out_channels, 1, 1), "float32")
    return replace(w, epilogue=Epilogue(steps, (shift,)))


def block(
    inputs: int, wide: int, outputs: int, spatial: tuple[int, int], kernel: int = 3,
    stride: int = 1, *, pad: int | None = None, dilation: int = 1, batch: int = 1,
    steps: bool = True,
) -> ConvWorkload:  # fmt: skip
    """The three convolutions; both inner ones with a shift and a ReLU, the last with a residual."""
    first = conv_workload(inputs, spatial, wide, 1, batch=batch)
    middle = conv_workload(
        wide, spatial, wide, kernel, stride, dilation * (kernel - 1) // 2 if pad is None else pad,
        groups=wide, dilation=dilation, batch=batch,
    )  # fmt: skip
    last = conv_workload(wide, middle.out_spatial, outputs, 1, batch=batch)
    if steps:
        first, middle, last = _with_steps(first), _with_steps(middle), with_residual(last)
    return replace(last, producer=replace(middle, producer=first))


def case(w: ConvWorkload, seed: int, **fields: Any) -> tuple[Case, np.ndarray]:
    """A kernel and what it is to compute, convolution by convolution."""
    chain = Chain.of(w, 1)
    data, value = random(chain.wide.in_shape, seed), None
    weights, operands = [], []
    value = data.astype("float64")
    for i, part in enumerate((chain.wide, chain.depthwise, chain.last)):
        per_group = part.in_channels // part.groups
        weight = random((part.out_channels, per_group, *part.kernel), 10 * i + 1)
        weight = (weight / np.sqrt(per_group)).astype("float32")
        own = operands_of(part, 10 * i + 2)
        value = conv(part, value, weight)
        if part.epilogue.steps:
            value = np.maximum(value + sum(x.astype("float64") for x in own), 0)
        weights.insert(0, weight)
        operands += own
    made = Case(
        "inverted_residual", w, data=[data], weights=weights, operands=operands, layout=(V, V),
        **fields,
    )  # fmt: skip
    return made, value


CASES = {
    "whole blocks": block(V, 6 * V, V, (14, 14)),
    "odd channels": block(V + 3, 2 * V + 5, V - 1, (9, 11)),
    "stride 2": block(V, 3 * V, 2 * V, (15, 14), stride=2),
    "5x5, batch 3": block(3, V + 1, 5, (12, 13), 5, batch=3),
    "5x5 stride 2": block(V, 2 * V, V, (14, 13), 5, 2),
    "dilated": block(V, V, V, (12, 12), dilation=2),
    "no padding": block(V, V, V, (9, 9), pad=0),
    "padding past the kernel": block(2, 3, 4, (6, 6), 3, 1, pad=3),
    "stride past the kernel": block(V, V, V, (9, 9), 1, 2),
    "one position": block(V, 2 * V, V, (1, 1)),
    "one row": block(V, V, 2, (1, 30)),
    "no steps": block(V + 2, V, V, (10, 10), steps=False),
}


def test_matches_numpy() -> None:
    made = [case(w, i, missing=np.nan) for i, w in enumerate(CASES.values())]
    results = run_all([c for c, _ in made])
    for name, (_, want), got in zip(CASES, made, results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=name)


def test_strips_and_chunks_of_any_size_give_the_same() -> None:
    made = []
    for w in (block(V, 3 * V, V, (12, 9)), block(V, 3 * V, 2 * V, (23, 10), 5, 2)):
        for chunk, strips in ((1, 1), (4, 4), (4, 2), (6, 2), (8, 1), (12, 3), (12, 12)):
            params = {"chunk": chunk, "strips": strips, "wide_blocks": 2}
            params |= {"tile": 5, "blocks": 1, "wide_tile": 3}
            made.append(case(w, chunk, params=params))
    for (c, want), got in zip(made, run_all([c for c, _ in made]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=str(c.params))


def test_threads_make_the_same_bits() -> None:
    same_on_any_threads([case(block(V, 4 * V, V, (28, 28)), 0)[0]])


@pytest.mark.parametrize("name", TARGETS)
def test_other_targets(name: str) -> None:
    target = TARGETS[name]
    v = target.lanes
    text = assembly("inverted_residual", block(v, 6 * v, v, (14, 14)), target, (v, v))
    assert ("vfmadd" if name == "avx512" else "fmla") in text


@pytest.mark.parametrize(
    "strip, kernel, stride, held, kept",
    [(1, 3, 1, 3, 2), (4, 3, 1, 6, 2), (4, 3, 2, 9, 1), (2, 5, 2, 7, 3), (3, 1, 2, 5, 0)],
)
def test_rows_of_a_strip(strip: int, kernel: int, stride: int, held: int, kept: int) -> None:
    chain = Chain.of(block(V, V, V, (32, 32), kernel, stride), strip)
    assert (chain.held, chain.kept) == (held, kept)


def test_rows_that_chunks_share_cost_more(steady: None) -> None:
    algorithm, w = algorithms()["inverted_residual"], block(64, 384, 64, (56, 56))
    params = {**algorithm.default(w, NEON), "chunk": 28, "strips": 7}
    in_strips = algorithm.cost(w, params, NEON)
    in_chunks = algorithm.cost(w, {**params, "chunk": 4, "strips": 1}, NEON)
    assert in_strips * 1.05 < in_chunks


def test_wide_tensors_pay_in_high_resolution(steady: None) -> None:
    """MobileNetV2's second block: 9.6 MB of wide tensors that no cache level but the last holds."""
    w = block(16, 96, 24, (112, 112), stride=2, steps=False)
    chain, seconds = Chain.of(w, 1), 0.0
    for name, part in (
        ("spatial_pack", chain.wide), ("depthwise", chain.depthwise), ("spatial_pack", chain.last),
    ):  # fmt: skip
        alone = algorithms()[name]
        seconds += alone.cost(part, alone.default(part, NEON), NEON)
    algorithm = algorithms()["inverted_residual"]
    assert algorithm.cost(w, algorithm.default(w, NEON), NEON) < seconds


def test_bytes_are_without_what_lies_between() -> None:
    w = block(8, 32, 16, (5, 6), steps=False)
    assert w.bytes == 4 * (8 * 30 + 16 * 30 + 8 * 32 + 32 * 9 + 32 * 16)
    assert w.flops == 2 * 30 * 32 * (8 + 9 + 16)


def test_only_this_algorithm_takes_the_chain() -> None:
    assert set(algorithms(CASES["whole blocks"])) == {"inverted_residual"}


def test_strips_divide_the_chunk() -> None:
    algorithm, w = algorithms()["inverted_residual"], CASES["whole blocks"]
    params = {**algorithm.default(w, HOST), "chunk": 6, "strips": 4}
    assert "strips = 4 doesn't divide 6 rows" in algorithm.check(w, params, HOST)


W = CASES["whole blocks"]
MIDDLE = W.producer
assert MIDDLE is not None and MIDDLE.producer is not None
FIRST = MIDDLE.producer


def _first(**changes: Any) -> ConvWorkload:
    return replace(W, producer=replace(MIDDLE, producer=replace(FIRST, **changes)))


@pytest.mark.parametrize(
    "w, reason",
    [
        (_first(kernel=(3, 3)), "a first convolution other than 1x1"),
        (_first(groups=2), "a first convolution other than 1x1"),
        (_first(strides=(2, 2)), "a first convolution other than 1x1"),
        (_first(prologue=Epilogue()), "a prologue"),
        (_first(dtype="float16"), "dtypes float16 and float32"),
        (
            _first(epilogue=Epilogue((), (Operand((1, 1, 14, 14), "float32"),))),
            "operand 0 of a producer has shape",
        ),
        (replace(W, producer=replace(MIDDLE, groups=1)), "isn't a depthwise convolution"),
        (replace(W, groups=2), "before a convolution with groups"),
    ],
)
def test_refusals(w: ConvWorkload, reason: str) -> None:
    assert reason in algorithms()["inverted_residual"].supports(w, HOST).reason
