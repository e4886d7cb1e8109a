"""`int8_spatial_pack` against NumPy in int64, and the code that it becomes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules.kernels import (
    AVX512,
    HOST,
    NEON,
    Case,
    assembly,
    run_all,
    same_on_any_threads,
)
from tests.schedules.oracles import conv_workload
from tests.schedules.quantized_layers import (
    V,
    assert_same_bits,
    case,
    conv,
    expected,
    inner_loop,
    run_on,
)
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.dot_product import dot_product
from tvm_ext.schedules.quantized_workload import QuantizedConvWorkload
from tvm_ext.target import CpuTarget, resolve

NAME = "int8_spatial_pack"
EMERALD = resolve("llvm -mcpu=emeraldrapids")
A76 = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76")


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_matches_numpy(dtype: str) -> None:
    shapes = [
        (conv(V, (5, 6), V, 1, dtype=dtype), V),
        (conv(2 * V + 8, (6, 7), V + 1, 1, dtype=dtype), V),
        (conv(24, (9, 11), 2 * V + 1, 3, 1, 1, dtype=dtype), V),
        (conv(3, (17, 18), 40, 7, 2, 3, dtype=dtype), 0),
        (conv(20, (9, 9), 17, 3, 2, 1, dtype=dtype), V),
        (conv(5, (13, 12), 70, 3, 1, 2, 2, 2, dtype=dtype), 0),
        (conv(4 * V, (7, 7), 100, 1, 2, dtype=dtype), V),
        (conv(V, (8, 8), V, 3, batch=2, dtype=dtype), V),
        (conv(1, (4, 3), 1, 3, 1, 1, dtype=dtype), 0),
        (conv(V - 1, (1, 1), V, 1, dtype=dtype), V),
    ]
    assert_same_bits([case(NAME, w, (block, V)) for w, block in shapes])


@pytest.mark.parametrize("channels", [V - 1, V, V + 1, 4 * V + 3])
def test_channels_around_the_vector(channels: int) -> None:
    cases = [case(NAME, conv(channels, (5, 31), channels, k, 1, k // 2), (V, V)) for k in (1, 3)]
    assert_same_bits(cases)


def test_one_scale_for_all_channels() -> None:
    assert_same_bits([case(NAME, conv(8, (6, 6), 20, 3), per_channel=False)])


def test_parameters_change_the_loops_only() -> None:
    w, flat = conv(12, (10, 10), V + 4, 3, 1, 1), conv(2 * V, (7, 7), 5 * V, 1)
    params = [
        (w, (0, V), {"chunk": 3, "pieces": 2, "tile": 4, "blocks": 1}),
        (w, (V, V), {"chunk": 10, "tile": 1, "blocks": 2}),
        (flat, (V, V), {"chunk": 20, "pieces": 3, "blocks": 2, "tile": 4}),
        (flat, (V, V), {"chunk": 20, "pieces": 2, "blocks": 1, "stage": True}),
    ]
    assert_same_bits([case(NAME, w, layout, params=given) for w, layout, given in params])


def test_threads_make_the_same_bits() -> None:
    w = conv(16, (14, 14), 3 * V, 3, 1, 1)
    same_on_any_threads([case(NAME, w, params={"chunk": 4, "pieces": 2})])


def test_ties_go_to_even_and_limits_hold() -> None:
    w = conv(4, (1, 4), V, 1)
    # Sums of 1, 3, 5 and a huge one, halved: 0.5, 1.5, 2.5.
    data = np.full((1, 4, 1, 4), w.x_zero, "uint8")
    data[0, 0, 0] = w.x_zero + np.array([1, 3, 5, 178])
    weights = np.zeros((V, 4, 1, 1), "int8")
    weights[:, 0] = 1
    given = Case(
        NAME, w, [data], (weights, np.zeros(V, "int32"), np.full(V, 0.5, "float32")),
        layout=(0, V), out_dtype="uint8",
    )  # fmt: skip
    np.testing.assert_array_equal(expected(given)[0, 0, 0], [121, 123, 123, 210])
    np.testing.assert_array_equal(run_all([given])[0], expected(given))


def test_sums_wrap_as_32_bits_do() -> None:
    w = conv(4, (1, 1), V, 1)
    data = np.full((1, 4, 1, 1), 255, "uint8")
    weights = np.full((V, 4, 1, 1), 127, "int8")
    given = Case(
        NAME, w, [data], (weights, np.full(V, 2**31 - 1, "int32"), np.full(V, 1e-9, "float32")),
        layout=(0, V), out_dtype="uint8",
    )  # fmt: skip
    total = np.int64(2**31 - 1) + 4 * 127 * (255 - w.x_zero) - 2**32
    assert np.rint(np.float32(total) * np.float32(1e-9)) + w.result.zero == 119
    assert (run_all([given])[0] == 119).all()


def test_weight_words_are_packed_in_panels() -> None:
    w, algorithm = conv(2 * V, (5, 5), 3 * V, 3), algorithms()[NAME]
    given = case(NAME, w)
    group = dot_product(HOST).group
    if group != 4:
        pytest.skip("words of four bytes")
    params = {**algorithm.default(w, HOST), "blocks": 2}
    panels, bias, scales = algorithm.pack(w, params, HOST, given.weights)
    step = min(4, V // 4)
    assert panels.shape == (2, 2 * V // 4 // step, 3, 3, step, 2, V)
    # Panel 1 overlaps panel 0: its second vector is the third of all.
    word = panels[1, 0, 1, 2, 0, 1, 5 % V : 5 % V + 1].view("int8")
    np.testing.assert_array_equal(word, given.weights[0][2 * V + 5 % V, :4, 1, 2])
    zero = w.x_zero + dot_product(HOST).shift(w.dtype)
    folded = given.weights[1].astype("int64") - zero * given.weights[0].astype("int64").sum(
        (1, 2, 3)
    )
    np.testing.assert_array_equal(bias.reshape(-1), folded)
    np.testing.assert_array_equal(scales.reshape(-1), given.weights[2])


def test_refusals() -> None:
    algorithm = algorithms()[NAME]
    reason = algorithm.supports(conv(8, (4, 4), 8, 3, groups=8), HOST).reason
    assert reason == "8 groups; only 1"
    w = conv(8, (4, 4), 8, 3, 1, 1)
    wrong = algorithm.check(w, {**algorithm.default(w, HOST), "stage": False}, HOST)
    assert wrong.startswith("int8_spatial_pack.stage = False; allowed: True")


def test_estimates_a_quarter_of_the_float_kernels_time() -> None:
    # In cache, one core: the multiply-adds decide.
    algorithm, w = algorithms()[NAME], conv(256, (28, 28), 256, 3, 1, 1)
    floats, f = algorithms()["spatial_pack"], conv_workload(256, (28, 28), 256, 3, 1, 1)
    ours = algorithm.cost(w, algorithm.default(w, EMERALD), EMERALD)
    theirs = floats.cost(f, floats.default(f, EMERALD), EMERALD)
    assert 3.2 < theirs / ours < 5


SHAPES = {
    "3x3": conv(64, (56, 56), 64, 3, 1, 1),
    "1x1": conv(256, (56, 56), 64, 1),
    "1x1 of int8": conv(64, (56, 56), 256, 1, dtype="int8"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_vnni_code(name: str) -> None:
    text = assembly(NAME, SHAPES[name], EMERALD, (16, 16))
    products = [line for line in text.splitlines() if "vpdpbusd" in line]
    assert products
    assert all("%zmm" in line for line in products)
    # Neither multiplications nor conversions of single values.
    scalar = ("mulss", "cvtsi2ss", "cvttss2si", "vroundss", "vrndscaless", "pinsrb")
    assert not [line for line in text.splitlines() if any(word in line for word in scalar)]
    # 14 positions x 2 vectors x 4 words; each word is spread once, each vector of weights read.
    count, others = inner_loop(text, "vpdpbusd")
    assert count == 112
    assert (others.pop("vpbroadcastd"), others.pop("vmovdqa64")) == (56, 8)
    # Pointers, the counter, the jump, and what is prefetched, which depends on the caches.
    assert sum(others.values()) <= 8


@pytest.mark.parametrize(
    ("target", "instruction"),
    [
        (resolve("llvm -mcpu=core-avx2"), "vpmaddwd"),
        (resolve("llvm -mcpu=alderlake"), "vpdpbusd"),
        (AVX512, "vpmaddwd"),
        (resolve("llvm -mcpu=x86-64-v2"), "pmaddwd"),
        (A76, "sdot"),
        (NEON, "mla"),
    ],
    ids=["avx2", "avx-vnni", "avx512", "sse", "neon dotprod", "neon"],
)
def test_other_targets_use_their_instruction(target: CpuTarget, instruction: str) -> None:
    layout = (target.lanes, target.lanes)
    text = assembly(NAME, conv(16, (8, 8), 16, 3, 1, 1, dtype="int8"), target, layout)
    assert sum(instruction in line for line in text.splitlines()) >= 4


@pytest.mark.parametrize("cpu", ["core-avx2", "x86-64-v2"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_widened_products_match_numpy(cpu: str, dtype: str) -> None:
    target = resolve(f"llvm -mcpu={cpu}")
    if not target.is_host:
        pytest.skip(f"this machine can't run {cpu}")
    v = target.lanes
    for w, block in [(conv(7, (6, 9), 21, 3, 1, 1, dtype=dtype), v), (conv(3, (7, 8), 9, 3), 0)]:
        given = case(NAME, w, (block, v))
        np.testing.assert_array_equal(run_on(target, given), expected(given))


def test_a_workload_counts_its_work() -> None:
    w: QuantizedConvWorkload = conv(8, (9, 9), 4, 3, 2, 1, batch=2)
    assert w.out_shape == (2, 4, 5, 5)
    assert (w.macs, w.weight_bytes) == (2 * 4 * 25 * 72, 288)
    assert w.bytes == 2 * 8 * 81 + 2 * 4 * 25 + 288
