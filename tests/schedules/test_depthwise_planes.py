"""The depthwise kernel of planes against numpy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run, run_all
from tests.schedules.oracles import conv, conv_workload, random
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step

V = HOST.lanes
NAME = "depthwise_planes"
# Channels, spatial dimensions, kernel, stride, padding, dilation.
CASES = {
    "planes wider than a vector": (V, (5, V + 2), 3, 1, 1, 1),
    "one channel more": (V + 1, (8, 8), 3, 1, 1, 1),
    "one channel less": (V - 1, (9, 9), 3, 2, 1, 1),
    "no padding": (2 * V, (12, 20), 3, 1, 0, 1),
    "fewer positions than lanes": (V + 2, (1, 2), 1, 1, 0, 1),
    "5x5 dilated": (V + 1, (12, 13), 5, 2, 2, 2),
    "9x9": (2, (19, 30), 9, 1, 4, 1),
    "padding past the kernel": (2, (6, 6), 3, 3, 3, 1),
    "kernel past the input": (2, (4, 4), 5, 1, 4, 1),
    "stride past the kernel": (3, (11, 11), 1, 3, 0, 1),
    "oblong": (3, (6, 9), (1, 5), (2, 1), (0, 2), 1),
}


def workload(
    channels: int, spatial: tuple[int, ...], *window: object, batch: int = 1
) -> ConvWorkload:
    kernel, stride, pad, dilation = window
    return conv_workload(
        channels, spatial, channels, kernel, stride, pad,
        groups=channels, dilation=dilation, batch=batch,
    )  # fmt: skip


def case(w: ConvWorkload, **params: object) -> tuple[Case, np.ndarray]:
    data, weight = random(w.in_shape, 1), random((w.out_channels, 1, *w.kernel), 2)
    made = Case(NAME, w, data=[data], weights=[weight], params=params)
    return made, conv(w, data, weight)


@pytest.mark.parametrize("rows", (1, 2, 0), ids=("1 row", "2 rows", "all rows"))
def test_matches_numpy(rows: int) -> None:
    """Whatever rows a task has; panels of 2 overlap where there are 5 or 9."""
    cases = {}
    for i, (name, arguments) in enumerate(CASES.items()):
        w = workload(*arguments, batch=1 + i % 2)
        height = w.out_spatial[0]
        cases[name] = case(w, rows=min(rows or height, height), parallel=i % 2 == 0)
    made = run_all([made for made, _ in cases.values()])
    for (name, (_, want)), got in zip(cases.items(), made, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)


def test_epilogue() -> None:
    """A bias for each channel, a number for all of them, and a limit."""
    w = workload(V + 1, (9, 11), 3, 1, 1, 1, batch=2)
    steps = (
        Step("add", (("value", 0), ("operand", 0))),
        Step("multiply", (("value", 1), ("operand", 1))),
        Step("relu", (("value", 2),)),
    )
    shapes = ((1, V + 1, 1, 1), (2, 1, 1, 1))
    epilogue = Epilogue(steps, tuple(Operand(s, "float32") for s in shapes), 1)
    plain, want = case(w)
    bias, scale = random(shapes[0], 3), random(shapes[1], 4)
    got = run(
        NAME, replace(w, epilogue=epilogue), data=plain.data, weights=plain.weights,
        operands=[bias, scale],
    )  # fmt: skip
    np.testing.assert_allclose(got, np.maximum((want + bias) * scale, 0), rtol=1e-5, atol=1e-5)


def test_special_values_stay_in_their_channels() -> None:
    w = workload(V + 1, (6, 6), 3, 1, 1, 1)
    made, _ = case(w)
    made.data[0][0, 1, 2, 3], made.data[0][0, V, 0, 0] = np.nan, np.inf
    (got,) = run_all([made])
    with np.errstate(invalid="ignore"):
        want = conv(w, made.data[0], made.weights[0])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_tasks_fit_the_cache_and_feed_the_cores() -> None:
    algorithm = algorithms()[NAME]
    small = workload(4 * V, (14, 14), 3, 1, 1, 1)
    assert algorithm.default(small, replace(NEON, cores=1))["rows"] == 14
    large = workload(NEON.lanes, (600, 600), 3, 1, 1, 1)
    rows = algorithm.default(large, replace(NEON, cores=1))["rows"]
    assert rows > 1 and 4 * 2 * NEON.lanes * 600 * rows <= NEON.l2
    assert algorithm.default(large, replace(NEON, cores=8))["rows"] <= 600 / 32 + 1


def test_vector_registers_of_other_targets() -> None:
    w = workload(32, (14, 14), 3, 1, 1, 1)
    assert "vfmadd" in assembly(NAME, w, AVX512) and "%zmm" in assembly(NAME, w, AVX512)
    assert "fmla" in assembly(NAME, w, NEON)


def test_refusals() -> None:
    supports = algorithms()[NAME].supports
    assert "only as many groups" in supports(conv_workload(8, (6, 6), 8, 3), HOST).reason
    w = workload(4, (6, 6), 3, 1, 1, 1)
    assert supports(w, HOST)
    assert "1 spatial dimensions" in supports(workload(4, (6,), 3, 1, 1, 1), HOST).reason
    assert "float16" in supports(replace(w, dtype="float16"), HOST).reason
    add = Step("add", (("value", 0), ("operand", 0)))
    residual = Epilogue((add,), (Operand(w.out_shape, "float32"),), 1)
    reason = supports(replace(w, epilogue=residual), HOST).reason
    assert reason == "operand 0 isn't the same in all positions"
