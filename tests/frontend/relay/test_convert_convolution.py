"""Convolutions against ONNX Runtime: attributes drawn by hypothesis, and every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontend.cases import Case as OnnxCase
from tests.frontend.cases import calls, normal, run_onnxruntime
from tests.frontend.relay.convert_cases import Case, Cases, agree, blocked, run
from tvm_ext.errors import ModelError
from tvm_ext.frontend.relay.convert import relay_to_relax

LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def by_onnx(op: str, x: np.ndarray, w: np.ndarray, **attrs: Any) -> np.ndarray:
    case = OnnxCase("oracle", op, [x, w], attrs)
    return run_onnxruntime(case.model(), case.feeds())[0]


def onnx_pads(padding: list[int], rank: int) -> list[int]:
    if len(padding) == 1:
        return padding * (2 * rank)
    return padding * 2 if len(padding) == rank else padding


@st.composite
def convolutions(draw: st.DrawFn, transposed: bool) -> tuple[Case, np.ndarray]:
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    groups = draw(st.sampled_from([1, 2]))
    inner, outer = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    numbers = lambda low, high: draw(  # noqa: E731
        st.lists(st.integers(low, high), min_size=rank, max_size=rank)
    )
    kernel, strides, dilation = numbers(1, 3), numbers(1, 3), numbers(1, 2)
    width = draw(st.sampled_from([1, rank, 2 * rank]))
    largest = min(kernel) - 1 if transposed else 2
    padding = draw(st.lists(st.integers(0, largest), min_size=width, max_size=width))
    seed = draw(st.integers(0, 99))
    x = normal(2, groups * inner, *[7, 6, 5][:rank], seed=seed)
    first = (groups * inner, outer) if transposed else (groups * outer, inner)
    w = normal(*first, *kernel, seed=seed + 100)
    attrs = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    onnx = {
        "strides": strides, "dilations": dilation, "group": groups,
        "pads": onnx_pads(padding, rank),
    }  # fmt: skip
    if transposed:
        extra = [draw(st.integers(0, s - 1)) for s in strides]
        attrs["output_padding"] = onnx["output_padding"] = extra
    name = f"conv{rank}d" + ("_transpose" if transposed else "")
    expected = by_onnx("ConvTranspose" if transposed else "Conv", x, w, **onnx)
    return Case("drawn", f"nn.{name}", [x, w], attrs, expected), expected


@settings(max_examples=20, deadline=None, derandomize=True, database=None)
@given(convolutions(transposed=False))
def test_attributes(drawn: tuple[Case, np.ndarray]) -> None:
    agree(run(drawn[0].module(), drawn[0].args[0]), drawn[1])


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(convolutions(transposed=True))
def test_attributes_of_transposed(drawn: tuple[Case, np.ndarray]) -> None:
    agree(run(drawn[0].module(), drawn[0].args[0]), drawn[1])


X = normal(2, 32, 7, 5)
W = normal(16, 32, 3, 2, seed=1)
Y = by_onnx("Conv", X, W, pads=[1, 0, 1, 0], strides=[2, 1])
ATTRS = {"strides": [2, 1], "padding": [1, 0], "channels": 16, "kernel_size": [3, 2]}
DEPTHWISE = normal(32, 1, 3, 3, seed=2)
MULTIPLIER = normal(64, 1, 3, 3, seed=3)
TRANSPOSED = normal(32, 4, 3, 3, seed=4)


CASES = Cases(
    [
        Case("nchw", "nn.conv2d", [X, W], ATTRS, Y),
        Case(
            "nhwc_hwio",
            "nn.conv2d",
            [X.transpose(0, 2, 3, 1), W.transpose(2, 3, 1, 0)],
            {**ATTRS, "data_layout": "NHWC", "kernel_layout": "HWIO"},
            Y.transpose(0, 2, 3, 1),
        ),
        Case(
            "nhwc_to_nchw",
            "nn.conv2d",
            [X.transpose(0, 2, 3, 1), W.transpose(0, 2, 3, 1)],
            {**ATTRS, "data_layout": "NHWC", "kernel_layout": "OHWI", "out_layout": "NCHW"},
            Y,
        ),
        Case(
            "blocked",
            "nn.contrib_conv2d_NCHWc",
            # OIHW8i4o: both channels in blocks, those of the input before those of the output.
            [blocked(X, 1, 8), blocked(blocked(W, 1, 8), 0, 4)],
            {
                **ATTRS,
                "data_layout": "NCHW8c",
                "kernel_layout": "OIHW8i4o",
                "out_layout": "NCHW4c",
            },
            blocked(Y, 1, 4),
        ),
        Case(
            "blocked_depthwise",
            "nn.contrib_depthwise_conv2d_NCHWc",
            [blocked(X, 1, 16), blocked(DEPTHWISE, 0, 16)],
            {
                "groups": 32,
                "padding": [1, 1],
                "data_layout": "NCHW16c",
                "kernel_layout": "OIHW16o",
                "out_layout": "NCHW16c",
            },
            blocked(by_onnx("Conv", X, DEPTHWISE, group=32, pads=[1] * 4), 1, 16),
        ),
        Case(
            "depthwise_multiplier",
            "nn.conv2d",
            [X, MULTIPLIER.reshape(32, 2, 3, 3)],
            {"groups": 32, "channels": 64},
            by_onnx("Conv", X, MULTIPLIER, group=32),
        ),
        Case(
            "depthwise_nhwc_hwoi",
            "nn.conv2d",
            [X.transpose(0, 2, 3, 1), MULTIPLIER.reshape(32, 2, 3, 3).transpose(2, 3, 0, 1)],
            {"groups": 32, "data_layout": "NHWC", "kernel_layout": "HWOI"},
            by_onnx("Conv", X, MULTIPLIER, group=32).transpose(0, 2, 3, 1),
        ),
        Case(
            "transpose_nhwc",
            "nn.conv2d_transpose",
            [X.transpose(0, 2, 3, 1), TRANSPOSED.transpose(2, 3, 1, 0)],
            {"strides": [2, 2], "data_layout": "NHWC", "kernel_layout": "HWOI"},
            by_onnx("ConvTranspose", X, TRANSPOSED, strides=[2, 2]).transpose(0, 2, 3, 1),
        ),
        Case(
            "bytes_to_int32",
            "nn.conv2d",
            [np.arange(48, dtype="int8").reshape(1, 3, 4, 4), np.full((2, 3, 1, 1), 9, "int8")],
            {"out_dtype": "int32"},
            (np.arange(48).reshape(1, 3, 16).sum(1) * 9)
            .astype("int32")
            .reshape(1, 1, 4, 4)
            .repeat(2, 1),
        ),
        Case("weights_at_run_time", "nn.conv2d", [X, W], ATTRS, Y, runtime=(0, 1)),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_layouts(name: str) -> None:
    CASES.check(name)


def test_form_is_that_of_the_other_front_ends() -> None:
    assert calls(relay_to_relax(CASES.cases["nchw"].module())) == ["relax.nn.conv2d"]
    # Weights arrive turned; the image is turned at both ends, nothing else.
    module = relay_to_relax(CASES.cases["nhwc_hwio"].module())
    assert calls(module) == ["relax.permute_dims", "relax.nn.conv2d", "relax.permute_dims"]


@pytest.mark.parametrize(
    ("op", "attrs", "message"),
    [
        ("conv2d", {"padding": [1, 2, 3]}, r"padding is \[1, 2, 3\]; it must be 1, 2 or 4"),
        ("conv2d", {"strides": [1, 2, 3]}, r"strides is \[1, 2, 3\]; it must be 1 or 2"),
        ("conv2d", {"data_layout": "NCWH9"}, "'NCWH9' is no layout"),
        ("conv2d", {"data_layout": "NCWD"}, "different axes"),
        ("conv2d", {"auto_scheduler_rewritten_layout": "x"}, "weights that a tuner rewrote"),
        ("conv2d_transpose", {"output_padding": [1, 0]}, "must be below the strides"),
    ],
)
def test_refusals(op: str, attrs: dict[str, Any], message: str) -> None:
    x = normal(1, 16, 4, 4)
    with pytest.raises(ModelError, match=rf"operator nn.{op} \(number 1 .*{message}"):
        relay_to_relax(Case("bad", f"nn.{op}", [x, W[:, :16]], attrs, None).module())
