"""`spatial_pack` of a processed input: results, instructions, and what it says that it costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles, pooled_convolutions, prologues
from tests.schedules.convolutions import CASES, TOLERANCE
from tests.schedules.kernels import (
    AVX512,
    HOST,
    TARGETS,
    assembly,
    parameters,
    run,
    same_on_any_threads,
)
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.workload import ElementwiseWorkload
from tvm_ext.target import CpuTarget

V = HOST.lanes


@pytest.mark.parametrize("block", [0, V])
def test_processes_the_input(block: int) -> None:
    workloads = {
        **CASES,
        "1x1, batch 3": conv_workload(13, (7, 8), 11, 1, batch=3),
        "groups of whole blocks": conv_workload(2 * V, (9, 9), 2 * V, 3, 1, 1, groups=2, batch=2),
        "3 inputs a group": conv_workload(6, (5, 6), 2 * V, 3, 1, 1, groups=2),
        "1x1, groups": conv_workload(2 * V + 4, (5, 6), 2 * V, 1, 2, groups=2),
    }
    cases = {
        key: prologues.case("spatial_pack", prologues.with_prologue(w), (block, V))
        for key, w in workloads.items()
    }
    w = prologues.with_sigmoid(conv_workload(12, (9, 9), 12, 3, 1, 1))
    cases["functions and numbers"] = prologues.case("spatial_pack", w, (block, V))
    oracles.agree(cases, TOLERANCE)


@pytest.mark.parametrize("block", [0, V])
def test_processes_and_pools(block: int) -> None:
    convolutions = {
        "3x3": conv_workload(5, (11, 13), 17, 3, 1, 1),
        "1x1 stride 2": conv_workload(6, (18, 21), 9, 1, 2),
    }
    cases = {
        (name, key): prologues.case("spatial_pack", prologues.with_prologue(pooled), (block, V))
        for name, w in convolutions.items()
        for key, pooled in pooled_convolutions.stages(w).items()
        if key in pooled_convolutions.FEW
    }
    oracles.agree(cases, TOLERANCE)


def test_every_cut_processes_the_input_on_any_threads() -> None:
    flat = prologues.with_prologue(conv_workload(9, (7, 7), 5 * V, 1, batch=2))
    window = prologues.with_prologue(conv_workload(12, (10, 10), 3 * V, 3, 1, 1))
    pooled = pooled_convolutions.with_pool(window, "max", 3, 2, 1)
    cases = {
        "1x1": prologues.case("spatial_pack", flat, (V, V), chunk=20, pieces=3, blocks=1),
        "3x3": prologues.case("spatial_pack", window, (V, V), chunk=3, pieces=2, tile=4),
        "pool": prologues.case("spatial_pack", pooled, (0, V), chunk=2, pieces=2, blocks=2),
    }
    oracles.agree(cases, TOLERANCE)
    same_on_any_threads([case for case, _ in cases.values()])


@pytest.mark.parametrize("block", [0, V])
def test_special_values_pass_the_prologue(block: int) -> None:
    w = prologues.with_prologue(conv_workload(5, (6, 9), 2 * V, 3, 1, 1))
    data, (scale, shift) = oracles.random(w.in_shape, 1), prologues.constants_of(w)
    weight = np.abs(oracles.random((2 * V, 5, 3, 3), 2))
    scale[0, 4], scale[0, 1] = -1, 1
    # The second infinity becomes positive, the third zero.
    data[0, 0, 0, 0], data[0, 4, 3, 8], data[0, 1, 5, 2] = np.nan, -np.inf, -np.inf
    x = prologues.processed(data, [scale, shift])
    with np.errstate(invalid="ignore"):
        expected = oracles.conv(w, x, weight)
    assert np.isnan(expected).sum() == 2 * V * 4
    assert np.isposinf(expected).sum() == 2 * V * 6
    actual = run("spatial_pack", w, data=[data], weights=[weight, scale, shift],
                 layout=(block, V), missing=np.nan)  # fmt: skip
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", [HOST, *TARGETS.values()], ids=["host", *TARGETS])
def test_the_prologue_is_a_vector_multiply_add_and_maximum(target: CpuTarget) -> None:
    plain = conv_workload(64, (14, 14), 64, 1)
    v = target.lanes
    with_it, without = (
        assembly("spatial_pack", w, target, (v, v), chunk=98, stage=True).splitlines()
        for w in (prologues.with_prologue(plain), plain)
    )

    def count(lines: list[str], *names: str) -> int:
        return sum(any(name in line for name in names) for line in lines)

    fused, apart = ("vfmadd", "vmulps") if target.isa != "neon" else ("fmla", "fmul\tv")
    assert count(with_it, fused) > count(without, fused)
    assert count(with_it, apart) == count(without, apart)
    register = {"avx512": "zmm", "avx2": "ymm", "sse": "xmm", "neon": ".4s"}[target.isa]
    maxima = [line for line in with_it if "max" in line or "fcmgt" in line]
    assert any(register in line for line in maxima)


def test_a_prologue_is_applied_to_a_copy_that_stays_in_cache() -> None:
    algorithm = algorithms()["spatial_pack"]
    for channels, size in ((256, 56), (512, 28), (1024, 14)):
        w = prologues.with_prologue(conv_workload(channels, (size, size), 128, 1))
        assert algorithm.space(w, AVX512)["stage"] == (True,)
        params = parameters("spatial_pack", w, AVX512, {})
        assert 4 * channels * params["chunk"] < 0.6 * AVX512.l2


def test_what_every_piece_processes_costs_once_a_piece() -> None:
    algorithm, one_core = algorithms()["spatial_pack"], replace(AVX512, cores=1)
    w = prologues.with_prologue(conv_workload(512, (14, 14), 128, 1))
    params = {**algorithm.default(w, one_core), "blocks": 1}
    costs = [algorithm.cost(w, {**params, "pieces": n}, one_core) for n in (1, 2, 4)]
    assert costs[2] - costs[1] == pytest.approx(2 * (costs[1] - costs[0]))
    dear = prologues.with_sigmoid(w)
    assert algorithm.cost(dear, params, one_core) > costs[0]


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_prologue_costs_less_than_a_kernel_before(target: CpuTarget) -> None:
    """In dense blocks: the input is read, written and read again without it."""
    for channels, size in ((64, 56), (256, 56), (512, 28), (256, 14), (1024, 14), (1024, 7)):
        plain = conv_workload(channels, (size, size), 128, 1)
        w = prologues.with_prologue(plain)
        alone = ElementwiseWorkload(w.in_shape, "float32", prologues.as_elementwise(w))
        before, apart, fused = (
            estimate(name, x, target)
            for name, x in (("elementwise", alone), ("spatial_pack", plain), ("spatial_pack", w))
        )
        assert fused < before + apart


def estimate(name: str, workload: object, target: CpuTarget) -> float:
    """Seconds that the algorithm says its defaults take."""
    algorithm = algorithms()[name]
    return algorithm.cost(workload, algorithm.default(workload, target), target)
