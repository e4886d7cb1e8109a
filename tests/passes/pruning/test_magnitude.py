"""Pruning by magnitude, against sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relax_models import array

from tvm_ext.errors import OptionError
from tvm_ext.passes.pruning import MagnitudePrune


def test_a_worked_example() -> None:
    weights = np.array([[0.1, -3.0, 2.0], [-0.5, 0.0, 1.0]], "float32")
    kept = MagnitudePrune(density=0.5).mask(weights)
    np.testing.assert_array_equal(kept, [[False, True, True], [False, False, True]])


@pytest.mark.parametrize("shape", [(7, 3, 3, 3), (5, 4), (6, 1, 3), (2, 2, 3, 3, 3)])
@pytest.mark.parametrize("density", [0.01, 0.3, 1.0])
def test_the_largest_of_every_shape_are_kept(shape: tuple[int, ...], density: float) -> None:
    weights = array(0, *shape)
    kept = MagnitudePrune(density).mask(weights)
    count = max(1, round(density * weights.size))
    assert kept.shape == shape
    assert kept.sum() == count
    assert np.abs(weights[kept]).min() == np.sort(np.abs(weights), axis=None)[-count]


def test_layers_compete_if_asked() -> None:
    weights = {"small": np.array([[0.1, 0.2]]), "large": np.array([[1.0, 2.0], [3.0, 0.15]])}
    alone = MagnitudePrune(density=0.5).masks(weights)
    assert {name: mask.sum() for name, mask in alone.items()} == {"small": 1, "large": 2}
    kept = MagnitudePrune(density=0.5, scope="global").masks(weights)
    assert not kept["small"].any()
    np.testing.assert_array_equal(kept["large"], [[True, True], [True, False]])
    assert MagnitudePrune(density=0.5, scope="global").masks({}) == {}


def test_density_is_replaced() -> None:
    scheme = MagnitudePrune(density=0.5, scope="global")
    assert scheme.at_density(0.2, (3, 3)) == MagnitudePrune(density=0.2, scope="global")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": 0}, r"density=0 has to be"),
        ({"density": 1.5}, r"density=1.5 has to be"),
        ({"density": 0.5, "scope": "all"}, "scope='all' is not one of layer, global"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        MagnitudePrune(**options)
