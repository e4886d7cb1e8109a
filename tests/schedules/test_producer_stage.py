"""`spatial_pack` of pools and enlargements, in one kernel, against the two computed in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules.kernels import HOST, Case, assembly, run_all, same_on_any_threads
from tests.schedules.oracles import conv, conv_workload, operands_of, pool, random, with_residual
from tests.schedules.pooled_convolutions import stages
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.epilogue import Epilogue, Operand
from tvm_ext.schedules.producer_rows import producer_seconds
from tvm_ext.schedules.resize import ResizeWorkload, linear_taps
from tvm_ext.schedules.workload import PoolWorkload

V = HOST.lanes


def pooling(
    kind: str, channels: int, spatial: tuple[int, int], kernel: int, stride: int, pad: int,
    *, batch: int = 1, counted: bool = False,
) -> PoolWorkload:  # fmt: skip
    """A pool of square windows."""
    out = tuple((n + 2 * pad - kernel) // stride + 1 for n in spatial)
    two = (2 * [kernel], 2 * [stride], 2 * [pad], 2 * [pad], [1, 1])
    return PoolWorkload(
        kind, (batch, channels, *spatial), *map(tuple, two), (batch, channels, *out), counted
    )


def behind(
    producer: Any, outputs: int, kernel: int = 1, stride: int = 1, pad: int = 0
) -> ConvWorkload:
    """A convolution with a bias, a residual and a ReLU of what a producer makes."""
    batch, channels, *spatial = producer.out_shape
    w = conv_workload(channels, tuple(spatial), outputs, kernel, stride, pad, batch=batch)
    return replace(with_residual(w), producer=producer)


def enlarged(w: ResizeWorkload, x: np.ndarray, taps: list[np.ndarray]) -> np.ndarray:
    """The enlargement along one axis after the other, in float64."""
    x = x.astype("float64")
    for axis, factor in zip((2, 3), w.factors, strict=True):
        if w.kind == "nearest":
            x = np.repeat(x, factor, axis)
            continue
        low, fraction = taps[2 * (axis - 2) : 2 * (axis - 1)]
        high = np.minimum(low + 1, x.shape[axis] - 1)
        shape = [-1 if i == axis else 1 for i in range(4)]
        f = fraction.astype("float64").reshape(shape)
        x = np.take(x, low, axis) * (1 - f) + np.take(x, high, axis) * f
    return x


def case(w: ConvWorkload, seed: int, **fields: Any) -> tuple[Case, np.ndarray]:
    """A kernel and what it is to compute."""
    before, taps = w.producer, []
    data = random(before.shape, seed)
    if isinstance(before, PoolWorkload):
        middle = pool(before, data)
    else:
        if before.kind == "linear":
            sizes = zip(before.shape[2:], before.factors, strict=True)
            taps = [x for size, factor in sizes for x in linear_taps(size, factor, True)]
        middle = enlarged(before, data, taps)
    weight = random((w.out_channels, w.in_channels, *w.kernel), 2)
    weight /= np.float32(np.sqrt(weight[0].size))
    operands = operands_of(w, 11)
    want = np.maximum(conv(w, middle, weight) + operands[0] + operands[1], 0)
    made = Case(
        "spatial_pack", w, data=[data], weights=[weight, *taps], operands=operands,
        layout=(V, V), **fields,
    )  # fmt: skip
    return made, want


NEAREST, LINEAR = (ResizeWorkload(kind, (1, V, 5, 6), (2, 3)) for kind in ("nearest", "linear"))
CASES = {
    "max, 1x1": behind(pooling("max", V + 3, (12, 13), 3, 2, 0), 2 * V),
    "max of neighbours, 1x1": behind(pooling("max", 2 * V, (9, 11), 3, 1, 1, batch=2), V - 1),
    "average, 1x1": behind(pooling("avg", V, (9, 9), 3, 1, 1), V),
    "average with padding counted": behind(pooling("avg", V, (9, 9), 3, 1, 1, counted=True), V),
    "2x2, 3x3": behind(pooling("max", V + 1, (14, 18), 2, 2, 0), V, 3, 1, 1),
    "2x2, 5x5 stride 2": behind(pooling("avg", V, (22, 20), 2, 2, 0), V, 5, 2, 2),
    "3x3, 3x3 without padding": behind(pooling("max", 3, (16, 15), 3, 2, 1), 5, 3),
    "nearest, 1x1": behind(NEAREST, V),
    "nearest, 3x3": behind(NEAREST, 2 * V, 3, 1, 1),
    "nearest, 3x3 stride 2": behind(NEAREST, V, 3, 2, 1),
    "linear, 3x3": behind(LINEAR, V, 3, 1, 1),
    "linear, 7x7 stride 2, odd": behind(
        ResizeWorkload("linear", (2, 3, 7, 5), (3, 2)), V + 1, 7, 2, 3
    ),
}


def test_matches_numpy() -> None:
    made = [case(w, i) for i, w in enumerate(CASES.values())]
    results = run_all([c for c, _ in made])
    for name, (_, want), got in zip(CASES, made, results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("name", ["max, 1x1", "2x2, 3x3", "linear, 3x3"])
def test_every_parameter_gives_the_same(name: str) -> None:
    made = []
    for chunk, pieces, tile in ((1, 1, 1), (2, 1, 3), (4, 1, 5)):
        params = {"chunk": chunk, "pieces": pieces, "tile": tile, "blocks": 1}
        made.append(case(CASES[name], chunk, params=params))
    for (c, want), got in zip(made, run_all([c for c, _ in made]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=str(c.params))


def test_a_pool_behind_goes_with_a_producer() -> None:
    """Resize, convolution, ReLU and max pool as one kernel (Tiramisu, section 5)."""
    made, names = [], []
    for kind in ("nearest", "linear"):
        before = ResizeWorkload(kind, (1, V, 8, 9), (2, 2))
        w = conv_workload(V, (16, 18), V, 3, 1, 1)
        for name, pooled in stages(w).items():
            whole = replace(behind(before, V, 3, 1, 1), pool=pooled.pool)
            c, want = case(replace(whole, pool=None), 3)
            assert whole.pooling is not None
            made.append((replace(c, workload=whole), pool(whole.pooling, want)))
            names.append((kind, name))
    for name, (_, want), got in zip(names, made, run_all([c for c, _ in made]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=str(name))


def test_threads_make_the_same_bits() -> None:
    same_on_any_threads([case(w, 0)[0] for w in (CASES["2x2, 3x3"], CASES["max, 1x1"])])


def test_nothing_is_divided_in_the_inner_loop() -> None:
    text = assembly("spatial_pack", behind(LINEAR, V, 3, 1, 1), HOST, (V, V))
    assert "vfmadd" in text and "vdivps" not in text


def test_bytes_are_without_what_lies_between() -> None:
    producer = pooling("max", 8, (6, 8), 2, 2, 0)
    w = replace(conv_workload(8, (3, 4), 16, 1), producer=producer)
    assert w.source_shape == (1, 8, 6, 8)
    assert w.bytes == 4 * (8 * 48 + 16 * 12 + 8 * 16)


def test_rows_that_chunks_share_are_computed_again(steady: None) -> None:
    spatial_pack = algorithms()["spatial_pack"]
    w = behind(pooling("avg", 64, (56, 56), 2, 2, 0), 64, 3, 1, 1)
    params = {**spatial_pack.default(w, HOST), "pieces": 1}
    few, many = (spatial_pack.cost(w, {**params, "chunk": chunk}, HOST) for chunk in (7, 1))
    # A row alone reads three of the pool's, seven rows nine.
    more = (3 - 9 / 7) * producer_seconds(w.producer, HOST) / HOST.cores
    assert few + 0.8 * more < many


DEPTHWISE = conv_workload(V, (9, 9), V, 3, 1, 1, groups=V)
POOL = pooling("max", V, (9, 9), 3, 1, 1)
PLAIN = conv_workload(V, (9, 9), V, 1)


@pytest.mark.parametrize(
    "w, reason",
    [
        (replace(PLAIN, producer=replace(DEPTHWISE, groups=1)), "isn't a depthwise convolution"),
        (replace(PLAIN, producer=DEPTHWISE, groups=2, out_channels=4 * V), "with groups"),
        (replace(PLAIN, producer=POOL, prologue=Epilogue()), "a prologue"),
        (replace(PLAIN, producer=POOL, strides=(2, 2)), "a 1x1 convolution reads a part"),
        (replace(PLAIN, producer=replace(DEPTHWISE, dtype="float16")), "producer of float16"),
        (replace(PLAIN, producer=replace(POOL, prologue=Epilogue())), "with steps before it"),
        (
            replace(PLAIN, producer=pooling("max", V, (9, 9), 9, 1, 4)),
            "a producer that is one window",
        ),
        (
            replace(
                PLAIN,
                producer=replace(
                    DEPTHWISE, epilogue=Epilogue((), (Operand((1, V, 9, 9), "float32"),))
                ),
            ),
            "operand 0 of a producer has shape",
        ),
    ],
)
def test_refusals(w: ConvWorkload, reason: str) -> None:
    assert reason in algorithms()["spatial_pack"].supports(w, HOST).reason
