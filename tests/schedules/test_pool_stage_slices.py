"""`spatial_pack` with a pool of three dimensions as its last stage."""

from __future__ import annotations

import pytest

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST, assembly, fma_lines, same_on_any_threads
from tests.schedules.oracles import conv_workload
from tests.schedules.pooled_convolutions import case, with_pool, with_sums
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload

V = HOST.lanes
CLIP = conv_workload(5, (4, 9, 11), V + 1, 3, 1, 1)
STAGES = {
    "two slices": with_pool(CLIP, "max", 2, 2),
    "one slice": with_pool(CLIP, "max", (1, 2, 2), (1, 2, 2)),
    "three slices, one is left": with_pool(CLIP, "max", (3, 3, 3), (3, 2, 2), (0, 1, 1)),
    "average": with_pool(CLIP, "avg", (2, 3, 3), (2, 2, 1), (0, 1, 1), include=True),
    "average of what is inside": with_pool(CLIP, "avg", (2, 3, 3), (2, 2, 2), (0, 1, 1)),
    "hanging over": with_pool(conv_workload(4, (4, 9, 9), V, 3, 1, 1), "max", 2, 2, ceil=True),
    "strided convolution": with_pool(conv_workload(V, (9, 12, 13), 2 * V, 3, 2, 1), "max", 2, 2),
    "1x1x1, batch 2": with_pool(conv_workload(V, (4, 6, 6), V, 1, batch=2), "max", 2, 2),
    "groups": with_pool(conv_workload(2 * V, (4, 8, 8), 2 * V, 3, 1, 1, groups=2), "max", 2, 2),
    "no padding": with_pool(conv_workload(3, (6, 8, 9), V, 3), "max", 2, 2),
}


@pytest.mark.parametrize("block", [0, V])
def test_matches_numpy(block: int) -> None:
    oracles.agree({k: case("spatial_pack", w, (block, V)) for k, w in STAGES.items()}, 1e-4)


@pytest.mark.parametrize("chunk, pieces, tile", [(1, 1, 3), (2, 2, 5), (4, 1, 11)])
def test_every_parameter_gives_the_same(chunk: int, pieces: int, tile: int) -> None:
    w = with_pool(conv_workload(5, (4, 9, 11), 2 * V, 3, 1, 1), "max", 2, 2)
    params = {"chunk": chunk, "pieces": pieces, "tile": tile, "blocks": 1}
    oracles.agree({"": case("spatial_pack", w, (V, V), **params)}, 1e-4)


def test_threads_make_the_same_bits() -> None:
    w = with_pool(conv_workload(V, (8, 28, 28), 2 * V, 3, 1, 1), "max", 2, 2)
    same_on_any_threads([case("spatial_pack", w, (V, V))[0]])


def test_the_sums_stay_in_registers() -> None:
    w = with_pool(conv_workload(64, (4, 28, 28), 64, 3, 1, 1), "max", 2, 2)
    text = assembly("spatial_pack", with_sums(w), AVX512, (16, 16))
    lines = fma_lines(text)
    assert len(lines) > 28 and all("zmm" in line for line in lines)
    assert not any("(%rsp" in line.rsplit(",", 1)[-1] for line in lines)


@pytest.mark.parametrize(
    "w",
    [
        with_pool(CLIP, "max", (3, 2, 2), (2, 2, 2)),
        with_pool(CLIP, "max", (2, 2, 2), (2, 2, 2), (1, 0, 0)),
        with_pool(conv_workload(4, (5, 8, 8), V, 3, 1, 1), "max", 2, 2, ceil=True),
    ],
    ids=["shared slices", "padded slices", "hanging over the last slice"],
)
def test_windows_that_share_or_leave_slices_are_refused(w: ConvWorkload) -> None:
    reason = algorithms()["spatial_pack"].supports(w, HOST).reason
    assert reason == "a pool stage whose windows share slices, or hang over the last one"


def test_others_pool_images_only() -> None:
    w = with_pool(conv_workload(4, (4, 8, 8), V, 3, 1, 1), "max", 2, 2)
    able = {n for n, a in algorithms(w).items() if a.supports(w, HOST)}
    assert able == {"spatial_pack"}
