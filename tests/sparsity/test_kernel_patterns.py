"""Patterns of kernels against sets of taps that NumPy counts."""

from collections import Counter

import numpy as np
import pytest

from tests.sparsity.patterned import patterned
from tvm_ext.sparsity.kernel_patterns import KernelPatterns, code_of, tap_codes, taps_of


def _counted(weights):
    kernels = weights.reshape(*weights.shape[:2], -1)
    found = Counter(tuple(np.flatnonzero(k != 0).tolist()) for row in kernels for k in row)
    found.pop((), None)
    return dict(found)


@pytest.mark.parametrize("kernel", [(3, 3), (1, 5), (4, 4), (5, 5), (7, 7), (8, 8), (2,)])
def test_same_as_counting_sets(kernel):
    weights = patterned((12, 9, *kernel), patterns=5, entries=3)
    weights[0, 0] = 1
    found = KernelPatterns.of(weights)
    assert dict(zip(found.taps, found.kernels, strict=True)) == _counted(weights)
    assert found.distinct == len(found.taps)


def test_nan_is_a_value_and_negative_zero_is_none():
    weights = np.zeros((1, 2, 3, 3), "float32")
    weights[0, 0, 1, 1], weights[0, 0, 2, 2], weights[0, 1] = np.nan, -0.0, -0.0
    assert KernelPatterns.of(weights) == KernelPatterns(1, ((4,),), (1,))


def test_too_many_patterns_are_only_counted():
    rng = np.random.default_rng(0)
    weights = (rng.random((40, 40, 3, 3)) < 0.5).astype("float32")
    found = KernelPatterns.of(weights)
    assert found.distinct == len(_counted(weights)) > 64
    assert (found.taps, found.kernels) == ((), ())


def test_no_kernel_keeps_any():
    assert KernelPatterns.of(np.zeros((3, 2, 3, 3), "float32")) == KernelPatterns(0, (), ())


@pytest.mark.parametrize("taps", [(), (0,), (8, 15), (63,), tuple(range(64))])
def test_codes_tell_the_taps(taps):
    assert taps_of(code_of(taps)) == taps


def test_a_code_has_a_bit_for_each_tap():
    weights = np.zeros((1, 1, 8, 8), "float32")
    weights[0, 0, 7, 7] = weights[0, 0, 0, 1] = 1
    assert tap_codes(weights).item() == (1 << 63) + 2


def test_scaled():
    found = KernelPatterns(2, ((0,), (1,)), (10, 5)).scaled(0.5)
    assert found == KernelPatterns(2, ((0,), (1,)), (5, 2))
