"""Pools against loops over windows in numpy: attributes drawn by hypothesis, and layouts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontend.cases import calls, normal
from tests.frontend.relay.convert_cases import Case, Cases, agree, run
from tvm_ext.errors import ModelError
from tvm_ext.frontend.relay.convert import relay_to_relax


def pool(
    x: np.ndarray,
    kind: str,
    kernel: list[int],
    strides: list[int],
    dilation: list[int],
    begins: list[int],
    ends: list[int],
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> np.ndarray:
    """Relay's definition, in float64: ceil_mode keeps a window that starts in the padding.

    What its last window has behind the padding counts for no average.
    """
    rank = len(kernel)
    sizes = x.shape[2:]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    outs = []
    for n, e, s, b, a in zip(sizes, extents, strides, begins, ends, strict=True):
        span = n + b + a - e
        outs.append((-(-span // s) if ceil_mode else span // s) + 1)
    y = np.zeros((*x.shape[:2], *outs))
    for at in product(*(range(n) for n in outs)):
        taps, padded = [], 0
        for tap in product(*(range(k) for k in kernel)):
            where = [at[i] * strides[i] - begins[i] + tap[i] * dilation[i] for i in range(rank)]
            padded += all(p < n + a for p, n, a in zip(where, sizes, ends, strict=True))
            if all(0 <= p < n for p, n in zip(where, sizes, strict=True)):
                taps.append(x[(slice(None), slice(None), *where)].astype("float64"))
        if kind == "max":
            value = np.max(taps, 0) if taps else np.full(x.shape[:2], -np.inf)
        else:
            count = padded if count_include_pad else max(len(taps), 1)
            value = np.sum(taps, 0) / count if taps else np.zeros(x.shape[:2])
        y[(slice(None), slice(None), *at)] = value
    return y.astype(x.dtype)


@st.composite
def pools(draw: st.DrawFn) -> tuple[Case, np.ndarray]:
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    kind = draw(st.sampled_from(["max", "avg"]))

    def numbers(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(rank)]

    kernel, strides, dilation = numbers(2, 3), numbers(1, 3), numbers(1, 2)
    begins, ends = numbers(0, 1), numbers(0, 1)
    ceil_mode, counted = draw(st.booleans()), draw(st.booleans())
    x = normal(1, 2, *[8, 7, 6][:rank], seed=draw(st.integers(0, 99)))
    expected = pool(
        x, kind, kernel, strides, dilation, begins, ends, ceil_mode, counted and kind == "avg"
    )
    # Relay itself has no defined maximum of a window that is all padding.
    if not np.isfinite(expected).all():
        ceil_mode = False
        expected = pool(x, kind, kernel, strides, dilation, begins, ends)
    attrs = {
        "pool_size": kernel,
        "strides": strides,
        "dilation": dilation,
        "padding": begins + ends,
        "ceil_mode": ceil_mode,
    }
    if kind == "avg":
        attrs["count_include_pad"] = counted
    return Case("drawn", f"nn.{kind}_pool{rank}d", [x], attrs, expected), expected


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(pools())
def test_attributes(drawn: tuple[Case, np.ndarray]) -> None:
    agree(run(drawn[0].module(), drawn[0].args[0]), drawn[1])


X = normal(2, 3, 7, 5)
HWC = X.transpose(0, 2, 3, 1)
POOLED = pool(X, "max", [3, 3], [2, 2], [1, 1], [1, 1], [1, 1])


def adaptive(x: np.ndarray, sizes: list[int], function: Any) -> np.ndarray:
    y = np.zeros((*x.shape[:2], *sizes), x.dtype)
    for at in product(*(range(n) for n in sizes)):
        window = tuple(
            slice(i * n // m, -(-(i + 1) * n // m))
            for i, n, m in zip(at, x.shape[2:], sizes, strict=True)
        )
        axes = tuple(range(2, x.ndim))
        y[(slice(None), slice(None), *at)] = function(x[(..., *window)], axis=axes)
    return y


CASES = Cases(
    [
        Case(
            "nhwc",
            "nn.max_pool2d",
            [HWC],
            {"pool_size": [3, 3], "strides": [2, 2], "padding": [1], "layout": "NHWC"},
            POOLED.transpose(0, 2, 3, 1),
        ),
        Case(
            "blocked",
            "nn.max_pool2d",
            [normal(1, 16, 4, 4).reshape(1, 2, 8, 4, 4).transpose(0, 1, 3, 4, 2)],
            {"pool_size": [2, 2], "layout": "NCHW8c"},
            pool(normal(1, 16, 4, 4), "max", [2, 2], [1, 1], [1, 1], [0, 0], [0, 0])
            .reshape(1, 2, 8, 3, 3)
            .transpose(0, 1, 3, 4, 2),
        ),
        Case("global_avg", "nn.global_avg_pool2d", [X], {}, X.mean((2, 3), keepdims=True)),
        Case(
            "global_max_nhwc",
            "nn.global_max_pool2d",
            [HWC],
            {"layout": "NHWC"},
            HWC.max((1, 2), keepdims=True),
        ),
        Case(
            "adaptive_avg",
            "nn.adaptive_avg_pool2d",
            [X],
            {"output_size": [3, 2]},
            adaptive(X, [3, 2], np.mean),
        ),
        Case(
            "adaptive_max",
            "nn.adaptive_max_pool2d",
            [X],
            {"output_size": [3, 2]},
            adaptive(X, [3, 2], np.max),
        ),
        # By hand: sums 10, -10 and 7 of four, rounded towards zero.
        Case(
            "whole_numbers",
            "nn.avg_pool2d",
            [np.array([[1, 2, -3, -4, 7, 0], [3, 4, -1, -2, 0, 0]], "int32")[None, None]],
            {"pool_size": [2, 2], "strides": [2, 2]},
            np.array([2, -2, 1], "int32").reshape(1, 1, 1, 3),
        ),
        Case("adaptive_whole", "nn.adaptive_max_pool2d", [X], {"output_size": []}, X),
        Case(
            "adaptive_1",
            "nn.adaptive_avg_pool3d",
            [normal(1, 2, 4, 3, 5)],
            {"output_size": [1]},
            normal(1, 2, 4, 3, 5).mean((2, 3, 4), keepdims=True),
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_kinds(name: str) -> None:
    CASES.check(name)


def test_global_pool_is_one_window() -> None:
    assert calls(relay_to_relax(CASES.cases["global_avg"].module())) == ["relax.nn.avg_pool2d"]


def test_wrong_output_size_is_refused() -> None:
    case = Case("bad", "nn.adaptive_avg_pool2d", [X], {"output_size": [1, 2, 3]}, None)
    with pytest.raises(ModelError, match=r"output_size is \[1, 2, 3\]; it must be 1 or 2"):
        relay_to_relax(case.module())
