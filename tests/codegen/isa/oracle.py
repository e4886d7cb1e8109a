"""The ISA's arithmetic in Python integers and single NumPy scalars, one value after the other."""

from fractions import Fraction

import numpy as np


def wrapped(value):
    """The low 32 bits of a Python integer, two's complement."""
    return (int(value) + 2**31) % 2**32 - 2**31


def clamped(value, low=-128, high=127):
    """A Python integer, limited."""
    return max(low, min(high, value))


def requantized(total, scale, zero=0, low=-128, high=127):
    """An int32 sum to int8; Python's `round` takes halves to the even neighbour."""
    product = np.float32(total) * np.float32(scale)
    return clamped(round(float(product)) + zero, low, high)


def fused(value, factor, addend):
    """float32(value * factor + addend) by way of the exact sum, rounded to float64 first."""
    exact = int(value) * Fraction(float(factor)) + Fraction(float(addend))
    return np.float32(float(exact))


def convolution(image, weights, padding, strides=(1, 1), dilations=(1, 1), pads=(0, 0), size=None):
    """(h, w, ci) and (co, kh, kw, ci) to a dict of Python integers by (y, x, c), not wrapped."""
    filters, kernel_height, kernel_width, depth = weights.shape
    sums = {}
    for y in range(size[0]):
        for x in range(size[1]):
            for c in range(filters):
                total = 0
                for i in range(kernel_height):
                    for j in range(kernel_width):
                        row = y * strides[0] + i * dilations[0] - pads[0]
                        column = x * strides[1] + j * dilations[1] - pads[1]
                        inside = 0 <= row < image.shape[0] and 0 <= column < image.shape[1]
                        for k in range(depth):
                            value = int(image[row, column, k]) if inside else padding
                            total += value * int(weights[c, i, j, k])
                sums[y, x, c] = total
    return sums


def output_size(image, kernel, strides, dilations, before, after):
    """Rows and columns of a convolution's result with pads (top, left) and (bottom, right)."""
    return tuple(
        (image[n] + before[n] + after[n] - (kernel[n] - 1) * dilations[n] - 1) // strides[n] + 1
        for n in range(2)
    )
