"""Zeros that stay zero while the other weights are trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from tvm_ext.training.weights import Weight


class Masks:
    """What is kept of some of a model's weights; at first, everything.

    Parameters
    ----------
    weights : sequence of Weight
        All of a model.
    """

    def __init__(self, weights: Sequence[Weight]) -> None:
        self._weights = {weight.name: weight for weight in weights}
        self._kept: dict[str, torch.Tensor] = {}

    def set(self, kept: Mapping[str, torch.Tensor]) -> None:
        """Replace the masks, and set what they don't keep to zero.

        Parameters
        ----------
        kept : Mapping[str, torch.Tensor]
            Layer name -> bool, in the shape of its weights.
        """
        self._kept = dict(kept)
        self.zero_weights()

    def get(self) -> dict[str, torch.Tensor]:
        """The masks that were set."""
        return dict(self._kept)

    def arrays(self) -> dict[str, np.ndarray]:
        """The masks that were set, as arrays of bool."""
        return {name: kept.cpu().numpy() for name, kept in self._kept.items()}

    def zero_gradients(self) -> None:
        """Set the gradients of removed weights to zero, so that no optimizer remembers them."""
        for name, kept in self._kept.items():
            gradient = self._weights[name].parameter.grad
            if gradient is not None:
                gradient.masked_fill_(~kept, 0)

    def zero_weights(self) -> None:
        """Set removed weights to zero, whatever an optimizer made of them."""
        for name, kept in self._kept.items():
            self._weights[name].parameter.detach().masked_fill_(~kept, 0)
