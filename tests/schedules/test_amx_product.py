"""Which products of terms are summed up, and in how many registers."""

from __future__ import annotations

import pytest

from tvm_ext.schedules.amx_product import PRODUCTS, TOLERANCES, TileCut


@pytest.mark.parametrize(("products", "terms", "least"), [(3, 2, 1), (4, 2, 2), (6, 3, 2)])
def test_all_larger_products_are_there(products: int, terms: int, least: int) -> None:
    """Term i is about 2^-8i of the value: those whose orders add up to less than `least` count."""
    pairs = PRODUCTS[products]
    assert len(set(pairs)) == products
    assert {(i, j) for i in range(terms) for j in range(terms) if i + j <= least} == set(pairs)
    assert TileCut(16, 2, 2, products).terms == terms


def test_registers_hold_sums_data_and_weights() -> None:
    cut = TileCut(5, 2, 2, 3)
    assert cut.registers == [5, 5, 5, 5, 5, 5, 16, 16]
    assert (cut.unit, cut.span, cut.units(21), cut.step_words) == (10, 32, 3, 2 * 2 * 256)


def test_what_fits() -> None:
    for cut in (TileCut(16, 2, 2, 3), TileCut(16, 1, 3, 6)):
        assert cut.problem(32, 3) == ""
    refused = TileCut(16, 2, 3, 3).problem(32, 3)
    assert refused == "2 x 3 tiles of sums don't fit 8 registers"
    assert TileCut(8, 2, 1, 3).problem(15, 1) == "2 tiles of 8 are more than 15 positions"
    refused = TileCut(8, 1, 2, 3).problem(8, 1)
    assert refused == "2 tiles across are more than 1 vectors of outputs"


def test_tolerances_allow_for_32_fold_cancellation() -> None:
    u = 2.0**-8
    for products, bound in ((3, 2 * u**2), (4, u**2), (6, 2 * u**3)):
        assert TOLERANCES[products] >= 32 * bound
