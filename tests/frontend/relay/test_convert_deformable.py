"""Deformable convolution against loops over numpy, and against a plain one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases, refuses

X, W = normal(2, 4, 5, 6), normal(3, 4, 3, 2, seed=1)


def sample(image: np.ndarray, y: float, x: float) -> float:
    """Between four pixels, those behind the last ones being 0; 0 outside of the image."""
    height, width = image.shape
    if not (0 <= y < height and 0 <= x < width):
        return 0.0
    y0, x0 = int(y), int(x)
    around = np.pad(image.astype("float64"), [(0, 1), (0, 1)])[y0 : y0 + 2, x0 : x0 + 2]
    return float([1 - y + y0, y - y0] @ around @ [1 - x + x0, x - x0])


def deformed(offset: np.ndarray, strides: int, padding: int, dilation: int, parts: int):
    """The sum over channels and taps, each at its shifted place."""
    n, _, height, width = offset.shape
    filters, channels, kh, kw = W.shape
    shifts = offset.reshape(n, parts, kh, kw, 2, height, width)
    out = np.zeros((n, filters, height, width))
    spans = map(range, (n, channels, kh, kw, height, width))
    for i, c, ky, kx, y, x in itertools.product(*spans):
        dy, dx = shifts[i, c // (channels // parts), ky, kx, :, y, x]
        row = y * strides - padding + ky * dilation + dy
        column = x * strides - padding + kx * dilation + dx
        out[i, :, y, x] += sample(X[i, c], row, column) * W[:, c, ky, kx]
    return out.astype("float32")


def case(name: str, strides: int, padding: int, dilation: int, parts: int, layout: str) -> Case:
    sizes = [
        (n + 2 * padding - (k - 1) * dilation - 1) // strides + 1
        for n, k in zip(X.shape[2:], W.shape[2:], strict=True)
    ]
    offset = normal(2, parts * 12, *sizes, seed=2) * 1.5
    attrs = {
        "strides": [strides] * 2,
        "padding": [padding] * 2,
        "dilation": [dilation] * 2,
        "deformable_groups": parts,
        "groups": 1,
    }
    expected = deformed(offset, strides, padding, dilation, parts)
    args = [X, offset, W]
    if layout == "NHWC":
        attrs |= {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        args = [X.transpose(0, 2, 3, 1), offset.transpose(0, 2, 3, 1), W.transpose(2, 3, 1, 0)]
        expected = expected.transpose(0, 2, 3, 1)
    return Case(name, "nn.deformable_conv2d", args, attrs, expected, runtime=(0, 1), rtol=1e-4)


CASES = Cases(
    [
        case("plain", 1, 1, 1, 1, "NCHW"),
        case("strided", 2, 1, 1, 2, "NCHW"),
        case("dilated", 1, 2, 2, 4, "NHWC"),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


def test_refuses_groups() -> None:
    offset = normal(2, 12, 3, 5)
    refuses("nn.deformable_conv2d", [X, offset, W], {"groups": 2}, "groups is 2; a deformable")
