"""Weights that are no numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_ext.errors import PruningError
from tvm_ext.passes.pruning.finite import check_finite


def test_numbers_pass() -> None:
    check_finite("conv", np.array([[0.0, -3e38]], "float32"))


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_layer_place_and_value_are_named(value: float, shown: str) -> None:
    weights = np.zeros((2, 3, 1, 1), "float32")
    weights[1, 2] = weights[1, 0] = value
    with pytest.raises(PruningError, match=rf"layer conv: the weight at \(1, 0, 0, 0\) is {shown}"):
        check_finite("conv", weights)
