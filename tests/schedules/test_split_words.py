"""bfloat16 terms: how much of a value they hold, on numbers made to be hard."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import tirx as T

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST
from tvm_ext.schedules import emit
from tvm_ext.schedules.split_words import pack_panels, split_array, store_words

U = 2.0**-8
# NaN as x86 makes it, as other processors do, with the lowest bit alone, and negative ones.
NANS = np.array([0x7FC00000, 0x7FFFFFFF, 0x7F800001, 0xFFFFFFFF, 0xFF800001], "uint32")


def _terms(words: np.ndarray) -> np.ndarray:
    """float64 (terms, k, n) of words (terms, steps, 16, n)."""
    halves = np.stack([words << np.uint32(16), words & np.uint32(0xFFFF0000)], axis=2)
    values = halves.view("float32").astype("float64")
    return values.reshape(words.shape[0], -1, words.shape[-1])


def _hard(count: int) -> np.ndarray:
    """Random numbers of many sizes, and those halfway between two bfloat16 values."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(count) * 2.0 ** rng.integers(-60, 60, count)
    x[::3] = rng.choice([-1, 1], x[::3].size) * (1 + U / 2 + rng.integers(-2, 3) * 2.0**-23)
    return x.astype("float32")


@pytest.mark.parametrize(("terms", "rest"), [(1, U), (2, U**2 / 2), (3, U**3 / 4)])
def test_terms_leave_no_more_than_stated(terms: int, rest: float) -> None:
    x = _hard(64 * 50).reshape(64, 50)
    found = _terms(split_array(x, terms)).sum(0)
    assert (np.abs(found - x) <= rest * np.abs(x)).all()
    assert (np.abs(found - x) > rest * np.abs(x) / 4).any() or terms == 3


def test_missing_rows_are_zero() -> None:
    words = split_array(oracles.random((33, 3), 1), 2)
    assert words.shape == (2, 2, 16, 3)
    np.testing.assert_array_equal(_terms(words)[:, 33:], 0)


def test_nan_stays_and_infinities_leave_nan() -> None:
    nan = _terms(split_array(np.tile(NANS.view("float32"), (32, 1)), 2)).sum(0)
    assert np.isnan(nan).all()
    large = np.array([[np.inf, -np.inf, 3.4e38, 3.39e38]], "float32")
    terms = _terms(split_array(large, 2))[:, 0]
    np.testing.assert_array_equal(np.isinf(terms[0]), [True, True, True, False])
    assert np.isnan(terms[1, :2]).all()
    assert terms[:, 3].sum() == pytest.approx(3.39e38, rel=2.0**-16)


def _kernel(terms: int) -> tvm.tirx.PrimFunc:
    def body() -> None:
        data = emit.argument("data", (32,))
        out = emit.argument("out", (terms, 16), "int32")
        store_words(
            lambda lane: data[lane], lambda lane: data[16 + lane], terms,
            lambda term, lane, word: T.buffer_store(out, word, [term, lane]),
        )  # fmt: skip

    return emit.build(body)


@pytest.mark.parametrize("terms", [2, 3])
def test_kernels_split_as_weights_are_split(terms: int) -> None:
    x = _hard(32)
    x[:5], x[7:10] = NANS.view("float32"), (np.inf, -np.inf, -0.0)
    out = tvm.runtime.tensor(np.zeros((terms, 16), "int32"))
    module = tvm.compile(tvm.IRModule({"main": _kernel(terms)}), target=HOST.tvm).mod
    module["main"](tvm.runtime.tensor(x), out)
    words = split_array(x[:, None], terms)[:, 0, :, 0]
    found, wanted = (
        _terms(w.reshape(terms, 1, 16, 1)) for w in (out.numpy().view("uint32"), words)
    )
    np.testing.assert_array_equal(found, wanted)


def test_kernels_split_in_vectors() -> None:
    module = tvm.compile(tvm.IRModule({"main": _kernel(2)}), target=AVX512.tvm).mod
    text = str(module.inspect_source("asm"))
    assert text.count("vsubps") == 2
    assert all("zmm" in line for line in text.splitlines() if "vsubps" in line)


def test_order_of_panels() -> None:
    """(panel, step, tap, term, block, word, lane) of one value each."""
    panels = np.zeros((2, 3, 40, 2, 16), "float32")
    panels[1, 2, 32 + 16 - 9, 1, 5] = 1.0  # channel 39: the second step's word 7, lower half
    packed = pack_panels(panels, 2).reshape(2, 2, 3, 2, 2, 16, 16)
    assert np.argwhere(packed).tolist() == [[1, 1, 2, 0, 1, 7, 5]]
    assert packed[1, 1, 2, 0, 1, 7, 5] == 0x3F80
