"""Windows of tensors against numpy's views of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases, refuses

X, Y = normal(2, 3, 7, 8), normal(2, 3, 7, 8, seed=1)
F = normal(3, 2, 3, seed=2)


def dilated(strides: int, padding: int, dilation: int) -> np.ndarray:
    padded = np.pad(X, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    extent = [(k - 1) * dilation + 1 for k in F.shape[1:]]
    windows = sliding_window_view(padded, extent, (2, 3))
    windows = windows[:, :, ::strides, ::strides, ::dilation, ::dilation]
    return (windows + F[:, None, None]).max((-2, -1))


def correlated(kernel: int, reach: int, stride: int, step: int, padding: int, product: bool):
    """Each window of the first image with every shifted one of the second."""
    a, b = (np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * 2) for x in (X, Y))
    border = reach + kernel // 2
    height, width = (-(-(n - 2 * border) // stride) for n in a.shape[2:])
    shifts = range(-(reach // step) * step, reach + 1, step)
    out = np.zeros((2, len(shifts) ** 2, height, width))
    for q, (dy, dx) in enumerate((dy, dx) for dy in shifts for dx in shifts):
        for y in range(height):
            for x in range(width):
                top, left = y * stride + reach, x * stride + reach
                one = a[:, :, top : top + kernel, left : left + kernel]
                two = b[:, :, top + dy : top + dy + kernel, left + dx : left + dx + kernel]
                both = one * two if product else np.abs(one - two)
                out[:, q, y, x] = both.mean((1, 2, 3))
    return out.astype("float32")


def spread(value: float) -> np.ndarray:
    out = np.full((2, 3, 13, 22), value, "float32")
    out[:, :, ::2, ::3] = X
    return out


NAMES = ("kernel_size", "max_displacement", "stride1", "stride2", "padding", "is_multiply")
CASES = Cases(
    [
        Case(
            "sliding_window",
            "sliding_window",
            [X],
            {"axis": 1, "window_shape": [3, 2, 3], "strides": [1, 2, 3]},
            sliding_window_view(X, (3, 2, 3), (1, 2, 3))[:, :, ::2, ::3],
        ),
        Case(
            "sliding_window_last",
            "sliding_window",
            [X],
            {"axis": -1, "window_shape": [4], "strides": [2]},
            sliding_window_view(X, 4, 3)[:, :, :, ::2],
        ),
        Case(
            "dilation2d",
            "image.dilation2d",
            [X, F],
            {"strides": [1, 1], "padding": [1, 1], "dilations": [1, 1]},
            dilated(1, 1, 1),
            runtime=(0, 1),
        ),
        Case(
            "dilation2d_nhwc",
            "image.dilation2d",
            [X.transpose(0, 2, 3, 1), F.transpose(1, 2, 0)],
            {
                "strides": [2, 2],
                "padding": [0, 0],
                "dilations": [2, 2],
                "data_layout": "NHWC",
                "kernel_layout": "HWI",
            },
            dilated(2, 0, 2).transpose(0, 2, 3, 1),
        ),
        *(
            Case(
                f"correlation_{'_'.join(map(str, numbers))}",
                "nn.correlation",
                [X, Y],
                dict(zip(NAMES, (*numbers[:4], [numbers[4]] * 2, numbers[5]), strict=True)),
                correlated(*numbers),
                runtime=(0, 1),
            )
            for numbers in ((1, 2, 1, 1, 2, True), (3, 3, 2, 2, 3, False), (3, 2, 1, 2, 4, True))
        ),
        Case("dilate", "nn.dilate", [X], {"strides": [1, 1, 2, 3]}, spread(0)),
        Case(
            "dilate_value",
            "nn.dilate",
            [X],
            {"strides": [1, 1, 2, 3], "dilation_value": -1.5},
            spread(-1.5),
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


def test_refusals() -> None:
    refuses("nn.correlation", [X, Y], {"layout": "NHWC"}, "layout is 'NHWC'; it must be NCHW")
    refuses("nn.correlation", [X, Y], {"max_displacement": 9}, "max_displacement is 9")
    attrs = {"axis": 2, "window_shape": [9], "strides": [1]}
    refuses("sliding_window", [X], attrs, r"window_shape is \[9\]; the data has the shape")
