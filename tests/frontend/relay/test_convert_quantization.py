"""QNN against whole numbers of Python, which are exact."""

from __future__ import annotations

from fractions import Fraction
from math import floor, frexp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontend.relay.convert_cases import Case, Cases
from tvm_ext.errors import ModelError
from tvm_ext.frontend.relay.convert import relay_to_relax
from tvm_ext.frontend.relay.converters.fixed_point import multiplier_and_shift

RNG = np.random.default_rng(5)


def requantized(
    q: np.ndarray,
    scale: float,
    zero: int,
    out_scale: float,
    out_zero: int,
    rounding: str = "UPWARD",
    dtype: str = "int8",
) -> np.ndarray:
    """Relay's definition with Python's integers: a significand of 31 bits, a shift, rounding."""
    limits = np.iinfo(dtype)
    significand, exponent = frexp(float(np.float32(scale)) / float(np.float32(out_scale)))
    multiplier = int(Fraction(significand) * 2**31 + Fraction(1, 2))
    factor = Fraction(multiplier, 2**31) * Fraction(2) ** exponent

    def one(value: int) -> int:
        exact = (int(value) - zero) * factor
        half = Fraction(1, 2)
        whole = floor(exact + half)
        if rounding == "TONEAREST" and exact < 0:
            whole = -floor(-exact + half)
        return min(max(whole + out_zero, limits.min), limits.max)

    return np.array([one(v) for v in q.reshape(-1)], dtype).reshape(q.shape)


def number(value: float, dtype: str = "float32") -> np.ndarray:
    return np.asarray(value, dtype)


def pair(scale: float, zero: int) -> list[np.ndarray]:
    return [number(scale), number(zero, "int32")]


WIDE = RNG.integers(-(2**17), 2**17, (3, 40)).astype("int32")
# Halves in exact arithmetic, where the two roundings differ.
HALVES = np.array([-6, -3, -1, 1, 3, 6], "int32")
REAL = np.array([-1.3, -0.25, 0.0, 0.25, 0.75, 1e9, -1e9], "float32")
A = RNG.integers(-128, 128, (2, 3, 4)).astype("int8")
B = RNG.integers(-128, 128, (2, 3, 4)).astype("int8")
IMAGE = RNG.integers(0, 256, (1, 4, 5, 5)).astype("uint8")
KERNEL = RNG.integers(-128, 128, (6, 4, 3, 3)).astype("int8")


def conv(x: np.ndarray, w: np.ndarray, pad: int) -> np.ndarray:
    x = np.pad(x.astype("int64"), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    rows, columns = x.shape[2] - 2, x.shape[3] - 2
    y = np.zeros((1, w.shape[0], rows, columns), "int64")
    for i in range(3):
        for j in range(3):
            window = x[:, :, i : i + rows, j : j + columns]
            y += np.einsum("nchw,oc->nohw", window, w[:, :, i, j].astype("int64"))
    return y.astype("int32")


def case(name: str, op: str, args: list, attrs: dict, expected, runtime=(0,)) -> Case:
    return Case(name, f"qnn.{op}", args, attrs, expected, runtime, rtol=0)


AXIS_SCALES = np.array([0.5, 0.013, 3.7], "float32")
SUM = np.clip(
    requantized(A, 0.5, 3, 0.7, 5, dtype="int32").astype("int64")
    + requantized(B, 0.9, -2, 0.7, 5, dtype="int32")
    - 5,
    -128,
    127,
).astype("int8")
DIFFERENCE = np.clip(
    requantized(A, 0.5, 3, 0.7, 5, dtype="int32").astype("int64")
    - requantized(B, 0.7, 5, 0.7, 5, dtype="int32")
    + 5,
    -128,
    127,
).astype("int8")
PRODUCT = requantized(
    (A.astype("int32") - 3) * (B.astype("int32") + 2),
    float(np.float32(0.5) * np.float32(0.9)), 0, 20.0, 5,
)  # fmt: skip
OUT = [*pair(0.7, 5)]

CASES = Cases(
    [
        case(
            f"requantize_{rounding.lower()}_{dtype}",
            "requantize",
            [WIDE, *pair(0.0037, 11), *pair(0.41, -7)],
            {"rounding": rounding, "out_dtype": dtype},
            requantized(WIDE, 0.0037, 11, 0.41, -7, rounding, dtype),
        )
        for rounding in ("UPWARD", "TONEAREST")
        for dtype in ("int8", "uint8", "int32")
    ]
    + [
        case(
            f"halves_{rounding.lower()}",
            "requantize",
            [HALVES, *pair(0.5, 0), *pair(1.0, 0)],
            {"rounding": rounding, "out_dtype": "int8"},
            np.array(halves, "int8"),
        )
        for rounding, halves in (
            ("UPWARD", [-3, -1, 0, 1, 2, 3]),
            ("TONEAREST", [-3, -2, -1, 1, 2, 3]),
        )
    ]
    + [
        case(
            "requantize_enlarging",
            "requantize",
            [HALVES, *pair(37.0, 1), *pair(0.5, 0)],
            {"out_dtype": "int32"},
            requantized(HALVES, 37.0, 1, 0.5, 0, dtype="int32"),
        ),
        case(
            "requantize_same_scale",
            "requantize",
            [A, *pair(0.3, 4), *pair(0.3, 9)],
            {"out_dtype": "int8"},
            np.clip(A.astype(int) + 5, -128, 127).astype("int8"),
        ),
        case(
            "requantize_axis",
            "requantize",
            [WIDE, AXIS_SCALES, number(0, "int32"), *pair(0.41, 2)],
            {"axis": 0, "out_dtype": "int8"},
            np.stack(
                [requantized(q, s, 0, 0.41, 2) for q, s in zip(WIDE, AXIS_SCALES, strict=True)]
            ),
        ),
        case(
            "requantize_floats",
            "requantize",
            [HALVES, *pair(0.5, 0), *pair(1.0, 0)],
            {"rounding": "TONEAREST", "compute_dtype": "float32", "out_dtype": "int8"},
            np.array([-3, -2, -1, 1, 2, 3], "int8"),
        ),
        case(
            "quantize",
            "quantize",
            [REAL, *pair(0.5, 3)],
            {"out_dtype": "int8"},
            # By hand: -2.6, -0.5, 0, 0.5, 1.5 in units of the scale.
            np.array([0, 2, 3, 4, 5, 127, -128], "int8"),
        ),
        case(
            "dequantize",
            "dequantize",
            [A, np.array([0.5, 0.25, 2.0], "float32"), np.array([1, -3, 0], "int32")],
            {"axis": 1},
            (A.astype("float32") - np.array([1, -3, 0], "float32")[:, None])
            * np.array([0.5, 0.25, 2.0], "float32")[:, None],
        ),
        case(
            "conv2d",
            "conv2d",
            [IMAGE, KERNEL, number(120, "int32"), number(-3, "int32"), number(0.1), number(0.2)],
            {"padding": [1, 1], "kernel_size": [3, 3], "channels": 6, "out_dtype": "int32"},
            conv(IMAGE.astype(int) - 120, KERNEL.astype(int) + 3, 1),
        ),
        case(
            "conv2d_nhwc",
            "conv2d",
            [
                IMAGE.transpose(0, 2, 3, 1), KERNEL.transpose(2, 3, 1, 0),
                number(120, "int32"), np.arange(6, dtype="int32"), number(0.1), number(0.2),
            ],
            {"data_layout": "NHWC", "kernel_layout": "HWIO", "out_dtype": "int32"},
            conv(
                IMAGE.astype(int) - 120, KERNEL.astype(int) - np.arange(6)[:, None, None, None], 0
            ).transpose(0, 2, 3, 1),
        ),
        case(
            "dense",
            "dense",
            [A[0], B[1], number(3, "int32"), number(-2, "int32"), number(0.1), number(0.2)],
            {"units": 3, "out_dtype": "int32"},
            ((A[0].astype(int) - 3) @ (B[1].astype(int) + 2).T).astype("int32"),
        ),
        case(
            "batch_matmul",
            "batch_matmul",
            [A, B, number(3, "int32"), number(-2, "int32"), number(0.1), number(0.2)],
            {"out_dtype": "int32"},
            ((A.astype(int) - 3) @ (B.astype(int) + 2).transpose(0, 2, 1)).astype("int32"),
            (0, 1),
        ),
        case("add", "add", [A, B, *pair(0.5, 3), *pair(0.9, -2), *OUT], {}, SUM, (0, 1)),
        case(
            "subtract", "subtract", [A, B, *pair(0.5, 3), *OUT, *OUT], {}, DIFFERENCE, (0, 1)
        ),
        case(
            "mul", "mul", [A, B, *pair(0.5, 3), *pair(0.9, -2), *pair(20.0, 5)], {}, PRODUCT, (0, 1)
        ),
        case(
            "concatenate",
            "concatenate",
            [
                (A, B), (number(0.5), number(0.7)),
                (number(3, "int32"), number(5, "int32")), *OUT,
            ],
            {"axis": 1},
            np.concatenate([requantized(A, 0.5, 3, 0.7, 5), B], 1),
        ),
        # By hand: a quarter of the first row, halves up, and twice the second.
        Case(
            "fixed_point_per_axis",
            "fixed_point_multiply_per_axis",
            [
                np.array([[-3, -1, 1, 3], [-3, -1, 1, 3]], "int32"),
                np.array([2**30, 2**30], "int32"),
                np.array([0, 2], "int32"),
                np.array([1, 0], "int32"),
            ],
            {"axes": [0], "is_lshift_required": True, "is_rshift_required": True},
            np.array([[-1, 0, 0, 1], [-6, -2, 2, 6]], "int32"),
        ),
        case(
            "sigmoid",
            "sigmoid",
            [np.array([-128, 0, 127], "int8"), *pair(0.1, 0), *pair(1 / 256, -128)],
            {},
            np.array([-128, 0, 127], "int8"),
        ),
    ]
)  # fmt: skip


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.floats(1e-6, 1e6))
def test_multiplier(ratio: float) -> None:
    multiplier, shift = multiplier_and_shift(np.asarray(ratio))
    assert 2**30 <= multiplier < 2**31
    exact = Fraction(int(multiplier)) * Fraction(2) ** (int(shift) - 31)
    assert abs(exact - Fraction(ratio)) <= Fraction(ratio) * Fraction(1, 2**31)


def test_multiplier_that_rounds_up_to_a_power_of_two() -> None:
    multiplier, shift = multiplier_and_shift(np.asarray(1 - 2.0**-40))
    assert (int(multiplier), int(shift)) == (2**30, 1)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"rounding": "DOWN"}, "rounding is 'DOWN'; it must be one of UPWARD, TONEAREST"),
        ({"compute_dtype": "int16"}, "'int16'; it must be one of int64, float32, float64"),
    ],
)
def test_refusals(attrs: dict, message: str) -> None:
    bad = case("bad", "requantize", [WIDE, *pair(0.1, 0), *pair(0.2, 0)], attrs, None)
    with pytest.raises(ModelError, match=message):
        relay_to_relax(bad.module())


def test_scales_must_be_known() -> None:
    args = [WIDE, *pair(0.1, 0), *pair(0.2, 0)]
    bad = case("bad", "requantize", args, {}, None, (0, 1))
    with pytest.raises(ModelError, match="the input 'scale' must be constant"):
        relay_to_relax(bad.module())
