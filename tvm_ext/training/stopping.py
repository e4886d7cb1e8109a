"""The best epoch by its validation loss, and when to stop looking for a better one."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from tvm_ext.training.options import EarlyStop
from tvm_ext.training.snapshot import Snapshot


class Stopper:
    """Keeps a model's best weights; see `EarlyStop`.

    Parameters
    ----------
    model : torch.nn.Module
    options : EarlyStop
    dense : float
        Validation loss of the dense model.
    """

    def __init__(self, model: nn.Module, options: EarlyStop, dense: float) -> None:
        self._options, self._dense = options, dense
        self._best = math.inf
        self._worse = 0
        self._weights = Snapshot(model)

    def update(self, validation: float) -> bool:
        """Note an epoch's loss; true if it was the last epoch."""
        if validation < self._best:
            self._best, self._worse = validation, 0
            self._weights.take()
        else:
            self._worse += 1
        patience, tolerance = self._options.patience, self._options.tolerance
        if tolerance is not None and validation <= self._dense + tolerance:
            return True
        return patience is not None and self._worse >= patience

    def restore(self) -> None:
        """Give the model the weights of the best epoch, if there was an epoch."""
        self._weights.restore()

    def state_dict(self) -> dict[str, Any]:
        """The best weights and loss, and the epochs since."""
        return {"best": self._best, "worse": self._worse, "weights": self._weights.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._best, self._worse = state["best"], state["worse"]
        self._weights.load_state_dict(state["weights"])
