"""What a scheme gets without writing it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tvm_ext.errors import OptionError
from tvm_ext.passes.pruning import Scheme


@dataclass(frozen=True)
class Positive(Scheme):
    """Keep what is positive in matrices."""

    def refuses(self, shape: tuple[int, ...]) -> str:
        return "" if len(shape) == 2 else f"{len(shape)} dimensions; only 2"

    def mask(self, weights: np.ndarray) -> np.ndarray:
        self.check_shape(weights.shape)
        return weights > 0

    def at_density(self, density: float, shape: tuple[int, ...]) -> Positive:
        return self


def test_layers_are_projected_each_for_itself() -> None:
    weights = {"a": np.array([[1.0, -1.0]]), "b": np.array([[-2.0], [2.0]])}
    masks = Positive().masks(weights)
    np.testing.assert_array_equal(masks["a"], [[True, False]])
    np.testing.assert_array_equal(masks["b"], [[False], [True]])
    assert Positive().fitted(weights) == Positive()
    assert Positive().densities((2, 2)) == (0.0, 1.0)


def test_a_refusal_is_an_error_that_names_scheme_and_shape() -> None:
    with pytest.raises(OptionError, match=r"Positive on weights of shape \(2,\): 1 dimensions"):
        Positive().mask(np.ones(2))
