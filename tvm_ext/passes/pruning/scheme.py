"""What every way to prune has to say: which weights are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from tvm_ext.errors import OptionError

Shape = tuple[int, ...]


class Scheme(ABC):
    """A way to prune, with its options; a frozen dataclass.

    The projection of weights W on what a scheme allows is ``W * scheme.mask(W)``. The passes and
    training with constraints both use it.
    """

    def refuses(self, shape: Shape) -> str:
        """Why weights of this shape can't be pruned this way; an empty string if they can.

        Parameters
        ----------
        shape : tuple of int
            (filters, inputs of a filter, *kernel).
        """
        return ""

    @abstractmethod
    def mask(self, weights: np.ndarray) -> np.ndarray:
        """What is kept of one layer.

        Parameters
        ----------
        weights : ndarray
            (filters, inputs of a filter, *kernel), floating-point and finite.

        Returns
        -------
        ndarray of bool
            Of the same shape.

        Raises
        ------
        OptionError
            The options don't fit a layer of this shape: what `refuses` says.
        """

    def masks(self, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What is kept of several layers, which a scheme may weigh against each other.

        Parameters
        ----------
        weights : Mapping[str, np.ndarray]
            Name of a layer -> its weights, as for `mask`.
        """
        scheme = self.fitted(weights)
        return {name: scheme.mask(array) for name, array in weights.items()}

    def fitted(self, weights: Mapping[str, np.ndarray]) -> Scheme:
        """The scheme with what it finds from all layers together fixed, such as a pattern set.

        Training fixes it once; otherwise its constraints would move while it follows them.
        """
        return self

    def densities(self, shape: Shape) -> tuple[float, float]:
        """The least and the largest share of weights of this shape that `at_density` takes."""
        return 0.0, 1.0

    @abstractmethod
    def at_density(self, density: float, shape: Shape) -> Scheme:
        """The scheme with the options that keep a share `density` of weights of this shape.

        Raises
        ------
        OptionError
            The share isn't in (0, 1], or outside of `densities`.
        """

    def check_shape(self, shape: Shape) -> None:
        """Raise an `OptionError` with what `refuses` says, if it does."""
        if reason := self.refuses(shape):
            raise OptionError(f"{type(self).__name__} on weights of shape {shape}: {reason}")
