"""What convolution on AMX takes, its parameters, how weights are packed, and its code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules import oracles, pooled_convolutions
from tests.schedules.amx_kernels import BLOCKED, SAPPHIRE
from tests.schedules.kernels import assembly
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules import algorithms
from tvm_ext.target import resolve

NAME = "amx_conv"
ALGORITHM = algorithms()[NAME]
LAYER = conv_workload(40, (9, 10), 70, 3, 1, 1)
# Rates are nominal: not those of the machine that the tests run on.
TARGET = replace(SAPPHIRE, is_host=False, cores=2)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (replace(LAYER, dtype="float16"), "dtype float16; only float32"),
        (conv_workload(16, (8, 8), 16, 3, 1, 1, groups=2), "groups 2; only 1"),
        (conv_workload(4, (4, 5, 6), 8, 3, 1, 1), "3 spatial dimensions; at most 2"),
        (
            pooled_convolutions.with_pool(LAYER, "l2", 2, 2),
            "a pool stage of kind 'l2'; only max and avg",
        ),
    ],
    ids=str,
)
def test_refusals_name_the_property(changed: Any, reason: str) -> None:
    assert ALGORITHM.supports(LAYER, TARGET)
    assert ALGORITHM.supports(changed, TARGET).reason == reason


def test_only_precision_high_allows_it() -> None:
    highest = resolve(TARGET, "highest")
    assert ALGORITHM.supports(LAYER, highest).reason == "precision highest; only high"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rows": 99}, "amx_conv.rows = 99 is not one of"),
        ({"products": 5}, "amx_conv.products = 5 is not one of [3, 4, 6]"),
        ({"down": 2, "across": 3}, "amx_conv: 2 x 3 tiles of sums don't fit 8 registers"),
        ({"rows": 1, "down": 2, "tile": 9, "across": 1}, "2 tiles of 9 are more than 10 positions"),
    ],
)
def test_illegal_parameters_are_named(changes: dict[str, int], problem: str) -> None:
    params = {**ALGORITHM.default(LAYER, TARGET), **changes}
    assert problem in ALGORITHM.check(LAYER, params, TARGET)


def test_defaults() -> None:
    params = ALGORITHM.default(LAYER, TARGET)
    assert params["products"] == 3
    assert not ALGORITHM.check(LAYER, params, TARGET)
    # A map of one row can't be shared in bands.
    row = conv_workload(512, (1, 14), 512, 3, 1, 1)
    assert ALGORITHM.default(row, TARGET)["pieces"] == 2
    assert ALGORITHM.default(row, replace(TARGET, cores=1))["pieces"] == 1
    # One vector of outputs: no second tile across.
    assert ALGORITHM.space(conv_workload(8, (9, 9), 16, 1), TARGET)["across"] == (1,)


def test_bands_have_the_rows_that_windows_need() -> None:
    w = pooled_convolutions.with_pool(LAYER, "max", 3, 2)
    assert ALGORITHM.space(w, TARGET)["rows"] == tuple(range(3, 10))


def test_tolerance_and_layout() -> None:
    for products, tolerance in ((3, 1e-3), (4, 5e-4), (6, 1e-4)):
        assert ALGORITHM.tolerance(LAYER, {"products": products}) == tolerance
    assert ALGORITHM.layouts(LAYER, TARGET) == (BLOCKED,)


def test_weights_are_cut_in_panels_of_words() -> None:
    """70 outputs are 5 vectors: the last panel of 2 overlaps its neighbour."""
    weight = oracles.random((70, 40, 3, 3), 1)
    params = {**ALGORITHM.default(LAYER, TARGET), "across": 2}
    (packed,) = ALGORITHM.pack(LAYER, params, TARGET, [weight])
    # Panel, step of 32 channels, tap, term, vector, word, lane.
    words = packed.view("uint32").reshape(3, 2, 9, 2, 2, 16, 16)
    lower, upper = (words << np.uint32(16)).view("float32"), (words & 0xFFFF0000).view("float32")
    for output, panel, vector, lane in ((3, 0, 0, 3), (50, 1, 1, 2), (50, 2, 0, 2), (69, 2, 1, 5)):
        for channel, step, word, half in ((5, 0, 5, lower), (19, 0, 3, upper), (39, 1, 7, lower)):
            terms = half[panel, step, 4, :, vector, word, lane].astype("float64")
            want = float(weight[output, channel, 1, 1])
            assert terms[0] == pytest.approx(want, rel=2.0**-8)
            assert terms.sum() == pytest.approx(want, rel=2.0**-17)
    np.testing.assert_array_equal(lower[:, 1, :, :, :, 8:], 0)  # channels past 40
    np.testing.assert_array_equal(upper[:, 1], 0)
    np.testing.assert_array_equal(words[2, ..., 1, :, 6:], 0)  # outputs past 70


@pytest.mark.parametrize(("products", "instructions"), [(3, 12), (4, 16), (6, 24)])
def test_code(products: int, instructions: int) -> None:
    """2 x 2 tiles of sums in a loop that LLVM may unroll, whatever machine the tests run on."""
    w = conv_workload(64, (8, 8), 64, 3, 1, 1)
    params = {"tile": 16, "down": 2, "across": 2, "rows": 8, "pieces": 1, "products": products}
    text = assembly(NAME, w, SAPPHIRE, BLOCKED, **params)
    count = text.count("\ttdpbf16ps")
    assert count
    assert count % instructions == 0
    assert "syscall" in text
