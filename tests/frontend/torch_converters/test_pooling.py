"""Pools: what counts in an average, ceil_mode, adaptive pools."""

import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..torch_cases import Cases, check, export, normal, operators, torch

F = torch.nn.functional
X = normal(2, 6, 9, 10)
LINE = normal(2, 4, 13)

CASES = Cases(
    {
        "max1d": (lambda x: F.max_pool1d(x, 2), LINE),
        "max2d": (lambda x: F.max_pool2d(x, 3, 2, 1), X),
        "max2d_default_stride": (lambda x: F.max_pool2d(x, (3, 2)), X),
        "max2d_ceil": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), X),
        "max2d_ceil_drops_a_window": (lambda x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True), X),
        "max2d_dilated": (lambda x: F.max_pool2d(x, 2, dilation=2), X),
        "max2d_no_batch": (lambda x: F.max_pool2d(x, 2), X[0]),
        "max3d": (lambda x: F.max_pool3d(x[None], 2), X),
        "average1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), LINE),
        "average2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), X),
        "average2d_inside": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), X),
        "average2d_ceil": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), X),
        "average2d_divisor": (lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=4), X),
        "average3d": (lambda x: F.avg_pool3d(x[None], 2), X),
        "adaptive1d": (lambda x: F.adaptive_avg_pool1d(x, 5), LINE),
        "adaptive2d_equal": (lambda x: F.adaptive_avg_pool2d(x, (3, 5)), X),
        "adaptive2d": (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), X),
        "adaptive2d_no_batch": (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), X[0]),
        "adaptive3d": (lambda x: F.adaptive_avg_pool3d(x[None], 2), X),
        "adaptive_max": (lambda x: F.adaptive_max_pool2d(x, (3, 1)), X),
        "area": (lambda x: F.interpolate(x, size=(4, 5), mode="area"), X),
    }
)


class Apply(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)


def test_adaptive_pool_with_equal_windows_is_an_ordinary_pool():
    exe = check(torch.nn.AdaptiveAvgPool2d((3, 5)), X)
    assert operators(exe) == ["avg_pool2d"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: F.max_pool2d(x, 2, return_indices=True), "its result 1 isn't supported"),
        (lambda x: F.adaptive_max_pool2d(x, (4, 3)), r"max pooling of \(2, 6, 9, 10\) to \(4, 3\)"),
        (
            lambda x: F.avg_pool2d(x, 2, ceil_mode=True, divisor_override=3),
            "divisor_override with ceil_mode",
        ),
    ],
)
def test_what_is_refused(function, message):
    with pytest.raises(ModelError, match=message):
        load_model(export(Apply(function), X))
