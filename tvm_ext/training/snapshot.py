"""A model's state, to come back to."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from torch import nn


class Snapshot:
    """Keeps parameters and buffers of a model.

    Parameters
    ----------
    model : torch.nn.Module
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._state: dict[str, Any] = {}

    def take(self) -> None:
        """Keep the model's state as it is."""
        self._state = deepcopy(self._model.state_dict())

    def restore(self) -> None:
        """Give the model the state that was taken; without one, leave it."""
        if self._state:
            self._model.load_state_dict(self._state)

    def state_dict(self) -> dict[str, Any]:
        """What was taken."""
        return self._state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with what was taken before."""
        self._state = dict(state)
