"""The depthwise kernel against numpy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run, run_all
from tests.schedules.oracles import conv, conv_workload
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step

V = HOST.lanes


def workload(
    batch: int, channels: int, spatial: tuple[int, ...], kernel: Any, stride: Any = 1,
    pad: Any = 0, dilation: Any = 1,
) -> ConvWorkload:  # fmt: skip
    return conv_workload(
        channels, spatial, channels, kernel, stride, pad,
        groups=channels, dilation=dilation, batch=batch,
    )  # fmt: skip


def inputs(w: ConvWorkload, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weight = rng.standard_normal((w.out_channels, 1, *w.kernel)).astype("float32")
    return rng.standard_normal(w.in_shape).astype("float32"), weight


CASES = {
    "3x3 tile - 1": (2, V, (7, 7), 3, 1, 1),
    "3x3 tile": (1, V + 1, (8, 8), 3, 1, 1),
    "3x3 tile + 1": (1, V - 1, (9, 9), 3, 1, 1),
    "three tiles": (1, V, (5, 26), 3, 1, 1),
    "stride 2": (1, 2 * V, (14, 15), 3, 2, 1),
    "no padding": (1, V, (12, 20), 3, 1, 0),
    "5x5 dilated": (1, V + 1, (12, 13), 5, 2, 2, 2),
    "7x7": (1, V, (9, 17), 7, 1, 3),
    "9x9": (1, 2, (19, 30), 9, 1, 4),
    "1x1": (1, V, (5, 6), 1, 1, 0),
    "padding past the kernel": (1, 2, (6, 6), 3, 3, 3),
    "kernel past the input": (1, 2, (4, 4), 5, 1, 4),
    "oblong": (2, 3, (6, 9), (1, 5), (2, 1), (0, 2)),
    "1d": (2, V + 1, (33,), 3, 1, 1),
    "1d long": (1, 3, (40,), 31, 1, 15),
    "3d": (1, V, (5, 6, 7), 3, 2, 1),
}


def test_matches_numpy() -> None:
    cases = []
    for seed, arguments in enumerate(CASES.values()):
        w = workload(*arguments)
        data, weight = inputs(w, seed)
        cases.append(Case("depthwise", w, data=[data], weights=[weight], layout=(V, V)))
    for name, case, got in zip(CASES, cases, run_all(cases), strict=True):
        want = conv(case.workload, case.data[0], case.weights[0])
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("tile,rows,parallel", ((1, 1, True), (5, 2, True), (9, 7, False)))
def test_every_parameter_gives_the_same(tile: int, rows: int, parallel: bool) -> None:
    w = workload(1, V + 1, (9, 21), 3, 1, 1)
    data, weight = inputs(w, 0)
    params = {"tile": tile, "rows": rows, "parallel": parallel}
    got = run("depthwise", w, data=[data], weights=[weight], layout=(V, V), params=params)
    np.testing.assert_allclose(got, conv(w, data, weight), rtol=1e-5, atol=1e-5)


def test_epilogue() -> None:
    w = workload(2, V + 1, (9, 11), 3, 2, 1)
    epilogue = Epilogue(
        (
            Step("add", (("value", 0), ("operand", 0))),
            Step("multiply", (("value", 1), ("operand", 1))),
            Step("relu", (("value", 2),)),
        ),
        (Operand((1, V + 1, 1, 1), "float32"), Operand(w.out_shape, "float32")),
    )
    w = replace(w, epilogue=epilogue)
    data, weight = inputs(w, 1)
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal(o.shape).astype("float32") for o in epilogue.operands)
    got = run("depthwise", w, data=[data], weights=[weight], operands=[x, y], layout=(V, V))
    want = np.maximum((conv(w, data, weight) + x) * y, 0)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-5)


def test_vector_registers_of_other_targets() -> None:
    w = workload(1, 32, (28, 28), 3, 1, 1)
    wide = assembly("depthwise", w, AVX512, (16, 16))
    assert "vfmadd" in wide and "%zmm" in wide
    narrow = assembly("depthwise", w, NEON, (4, 4))
    assert "fmla" in narrow and ".4s" in narrow


def test_refusals() -> None:
    algorithm, w = algorithms()["depthwise"], workload(1, 8, (8, 8), 3)
    assert "8 -> 16 channels in 8 groups" in (
        algorithm.supports(replace(w, out_channels=16), HOST).reason
    )
    assert "dtype float16" in algorithm.supports(replace(w, dtype="float16"), HOST).reason
    params = algorithm.default(w, HOST)
    assert "depthwise.tile = 99" in algorithm.check(w, {**params, "tile": 99}, HOST)
