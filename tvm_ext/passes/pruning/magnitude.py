"""Pruning of single weights by their magnitude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tvm_ext.passes.pruning.options import check_choice, check_density
from tvm_ext.passes.pruning.ranking import count_of, largest
from tvm_ext.passes.pruning.scheme import Scheme, Shape

SCOPES = ("layer", "global")


@dataclass(frozen=True)
class MagnitudePrune(Scheme):
    """Keep the weights of the largest magnitude, wherever they are.

    Parameters
    ----------
    density : float
        Share of the weights that is kept, in (0, 1]; at least one weight is.
    scope : str
        Whether ``"layer"`` by layer, each at this density, or ``"global"``: the weights of all
        layers compete, and a layer may lose all of its own.

    Raises
    ------
    OptionError
        An option has another value.
    """

    density: float
    scope: str = "layer"

    def __post_init__(self) -> None:
        check_density("density", self.density)
        check_choice("scope", self.scope, SCOPES)

    def mask(self, weights: np.ndarray) -> np.ndarray:
        return largest(np.abs(weights), count_of(self.density, weights.size))

    def masks(self, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if self.scope == "layer" or not weights:
            return super().masks(weights)
        kept = self.mask(np.concatenate([array.reshape(-1) for array in weights.values()]))
        ends = np.cumsum([array.size for array in weights.values()])
        parts = np.split(kept, ends[:-1])
        return {
            name: part.reshape(array.shape)
            for (name, array), part in zip(weights.items(), parts, strict=True)
        }

    def at_density(self, density: float, shape: Shape) -> MagnitudePrune:
        return replace(self, density=density)
