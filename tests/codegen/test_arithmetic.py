"""Factors by hand, and fused sums against exact rational arithmetic."""

from fractions import Fraction

import numpy as np

from tests.codegen.networks import spec
from tvm_ext.codegen.arithmetic import (
    add_registers,
    average_scale,
    fused,
    min_misses,
    product_scales,
)


def test_product_scales_round_after_each_step():
    scales = product_scales(0.1, np.array([0.3, 0.7], "float32"), 0.9)
    f = np.float32
    assert scales.tolist() == [float(f(f(0.1) * f(w)) / f(0.9)) for w in (0.3, 0.7)]
    assert scales.dtype == np.float32


def test_average_scale():
    assert average_scale(spec("x", (1, 1), 0.5), spec("y", (1, 1), 0.25), 8) == 0.25


def test_add_registers_by_hand():
    a, b, y = (spec(n, (1, 1), s, z) for n, s, z in (("a", 1, 3), ("b", 0.5, -4), ("y", 2, 7)))
    # 7 - (3 * 0.5 - 4 * 0.25)
    assert add_registers(a, b, y) == ((0.5, 0.25), 6.5)
    # Of uint8 tensors 128 is in every zero point: 135 - (131 * 0.5 + 124 * 0.25).
    assert add_registers(a, b, y, 128) == ((0.5, 0.25), 38.5)


def test_fused_is_rounded_once():
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, 2000)
    factor, addend = np.float32(0.0371), np.float32(-3.3333)
    for value, result in zip(x, fused(x, factor, addend), strict=True):
        exact = Fraction(int(value)) * Fraction(float(factor)) + Fraction(float(addend))
        nearby = [np.nextafter(result, np.float32(d)) for d in (-np.inf, np.inf)]
        error = abs(Fraction(float(result)) - exact)
        assert all(error <= abs(Fraction(float(n)) - exact) for n in nearby)


def test_min_misses_takes_the_nearest_of_the_best():
    start = np.float32(1)
    up = np.nextafter(start, np.float32(2))
    assert min_misses(start, lambda x: 0) == start
    assert min_misses(start, lambda x: int(x <= start)) == up
    assert min_misses(start, lambda x: 7) == start
