"""QNN's functions of one tensor, against Relay's definition in Python's integers."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from tests.frontend.relay.convert_cases import Case, Cases, refuses

Q = np.random.default_rng(0).integers(-128, 128, (2, 3, 6, 6)).astype("int8")


def scale(value: float) -> np.ndarray:
    return np.array(value, "float32")


def zero(value: int) -> np.ndarray:
    return np.array(value, "int32")


def rescaled(q: int, source: tuple[float, int], target: tuple[float, int]) -> int:
    """An integer in another scale: the exact quotient with 31 bits, halves upward."""
    ratio = Fraction(float(np.float32(source[0]))) / Fraction(float(np.float32(target[0])))
    return timed(q - source[1], float(ratio)) + target[1]


def timed(q: int, factor: float) -> int:
    """``q * factor`` with a factor of 31 bits, halves upward."""
    significand, exponent = np.frexp(factor)
    exact = Fraction(q * floor(significand * 2**31 + 0.5), 2**31) * Fraction(2) ** int(exponent)
    return floor(exact + Fraction(1, 2))


def each(function, a: np.ndarray, dtype: str = "int8") -> np.ndarray:
    limits = np.iinfo(dtype)
    values = [min(max(function(int(q)), limits.min), limits.max) for q in a.reshape(-1)]
    return np.array(values, dtype).reshape(a.shape)


def leaky(alpha: float, source: tuple[float, int], target: tuple[float, int]) -> np.ndarray:
    def one(q: int) -> int:
        moved = q if source == target else rescaled(q, source, target)
        if q >= source[1]:
            return moved
        return timed(moved, alpha) + timed(target[1], 1 - alpha)

    return each(one, Q)


def hardswish(source: tuple[float, int], target: tuple[float, int]) -> np.ndarray:
    x = (Q.astype("float64") - source[1]) * source[0]
    y = x * np.clip(x + 3, 0, 6) / 6 / target[0]
    whole = np.sign(y) * np.floor(np.abs(y) + 0.5)
    return np.clip(whole + target[1], -128, 127).astype("int8")


def averaged(source: tuple[float, int], target: tuple[float, int]) -> np.ndarray:
    moved = each(lambda q: rescaled(q, source, target), Q, "int32").astype("int64")
    sums = moved.reshape(2, 3, 3, 2, 3, 2).sum((3, 5))
    return each(lambda n: int(n / 4), sums)


def softmax(q: np.ndarray, unit: int, target: tuple[float, int]) -> np.ndarray:
    """Line by line in Python's integers; quotients are rounded towards zero."""
    result = []
    for row in q.reshape(-1, q.shape[-1]).tolist():
        x = [n - max(row) for n in row]
        x = [n + (n >> 1) - (n >> 4) for n in x]
        whole = [min(max(int(n / -unit), 0), 20) for n in x]
        line = [((n + k * unit) >> 1) + unit for n, k in zip(x, whole, strict=True)]
        powers = [n << (max(whole) - k) for n, k in zip(line, whole, strict=True)]
        share = 2**30 // sum(powers)
        out = [(share * n) >> 23 for n in powers]
        result.append([min(max(rescaled(n, (2**-7, 0), target), -128), 127) for n in out])
    return np.array(result, "int8").reshape(q.shape)


def parameters(*pairs: tuple[float, int]) -> list[np.ndarray]:
    return [make(value) for pair in pairs for make, value in zip((scale, zero), pair, strict=True)]


A, B = (0.125, 3), (0.1, -5)
REAL = np.linspace(-40, 40, 24, dtype="float32").reshape(2, 3, 4)
SCALES = np.array([0.5, 0.25, 0.125], "float32")
ZEROS = np.array([0, 3, -2], "int32")


def simulated(dtype: str) -> np.ndarray:
    shifted = np.round(REAL / SCALES[:, None]) + ZEROS[:, None]
    return np.clip(shifted, np.iinfo(dtype).min, np.iinfo(dtype).max).astype("float32")


CODES = {"": 0, "int8": 1, "uint8": 2}
CASES = Cases(
    [
        Case(
            "leaky_relu",
            "qnn.leaky_relu",
            [Q, *parameters(A, B)],
            {"alpha": 0.3},
            leaky(0.3, A, B),
        ),
        Case(
            "leaky_same",
            "qnn.leaky_relu",
            [Q, *parameters(A, A)],
            {"alpha": 0.3},
            leaky(0.3, A, A),
        ),
        Case(
            "hardswish",
            "qnn.hardswish",
            [Q, *parameters((0.0625, 3), (0.05, -5))],
            {},
            hardswish((0.0625, 3), (0.05, -5)),
        ),
        Case(
            "avg_pool2d",
            "qnn.avg_pool2d",
            [Q, *parameters(A, B)],
            {"pool_size": [2, 2], "strides": [2, 2]},
            averaged(A, B),
        ),
        Case(
            "softmax",
            "qnn.softmax",
            [Q, *parameters((0.1, 4), (1 / 256, -128))],
            {"axis": -1},
            softmax(Q, 10, (1 / 256, -128)),
        ),
        *(
            Case(
                f"simulated_quantize_{dtype or 'off'}",
                "qnn.simulated_quantize",
                [REAL, zero(code), SCALES, ZEROS],
                {"axis": 1},
                simulated(dtype) if dtype else REAL,
            )
            for dtype, code in CODES.items()
        ),
        *(
            Case(
                f"simulated_dequantize_{dtype or 'off'}",
                "qnn.simulated_dequantize",
                [REAL, zero(code), SCALES, ZEROS],
                {"axis": 1},
                ((REAL - ZEROS[:, None]) * SCALES[:, None]).astype("float32") if dtype else REAL,
            )
            for dtype, code in CODES.items()
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


def test_refusals() -> None:
    refuses("qnn.softmax", [Q, *parameters((1.5, 0), B)], {}, "one number of at most 1")
    refuses("qnn.simulated_quantize", [REAL, zero(9), SCALES, ZEROS], {}, "the code 9; it must be")
