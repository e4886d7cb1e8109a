"""Tile factors for other extents, by hand."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_ext.transfer.trace_template_tiles import divisors, rescale


@pytest.mark.parametrize(
    ("factors", "extent", "rule", "expected"),
    [
        ([2, 1, 4, 8], 64, "tiles", [2, 1, 4, 8]),
        ([2, 1, 4, 8], 128, "tiles", [4, 1, 4, 8]),
        # Of 12 the divisor nearest to 8 in ratio is 6 (12/8 is more than 8/6); of 2, 2 to 4.
        ([2, 1, 4, 8], 12, "tiles", [1, 1, 2, 6]),
        ([8, 16], 7, "tiles", [1, 7]),
        # The vector stays, the middle doubles with the extent.
        ([2, 1, 4, 8], 128, "shares", [1, 2, 8, 8]),
        ([4, 4, 4], 128, "shares", [4, 8, 4]),
        ([4, 4, 4], 32, "shares", [4, 2, 4]),
        ([4, 4, 4], 1, "shares", [1, 1, 1]),
        ([4], 9, "tiles", [9]),
    ],
)
def test_by_hand(factors: list[int], extent: int, rule: str, expected: list[int]) -> None:
    assert rescale(factors, extent, rule) == expected


def test_the_vector_has_a_limit() -> None:
    assert rescale([1, 128], 128, "tiles", most=64) == [2, 64]


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.integers(1, 300),
    st.sampled_from(["tiles", "shares"]),
)
def test_the_product_is_the_extent(factors: list[int], extent: int, rule: str) -> None:
    made = rescale(factors, extent, rule)
    assert len(made) == len(factors)
    assert prod(made) == extent
    assert rescale(factors, prod(factors), rule, most=prod(factors)) == factors


def test_divisors() -> None:
    assert divisors(1) == [1]
    assert divisors(36) == [1, 2, 3, 4, 6, 9, 12, 18, 36]
    assert divisors(13) == [1, 13]
