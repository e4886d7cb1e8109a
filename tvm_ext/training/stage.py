"""A part of a training run: some epochs with one optimizer, and what happens around them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch

from tvm_ext.training.history import Metrics
from tvm_ext.training.options import ADMM, FineTune


class Stage(ABC):
    """Some epochs of training.

    `start` is called before the first epoch, `before_epoch` and `after_epoch` around each, and
    `finish` after the last. A stage that goes on from a checkpoint has `load_state_dict` called
    instead of `start`.

    Parameters
    ----------
    number : int
        Of the round that it belongs to, from 0.
    options : ADMM or FineTune
    """

    kind: ClassVar[str]

    def __init__(self, number: int, options: ADMM | FineTune) -> None:
        self.number, self.epochs = number, options.epochs
        self._learning_rate, self._decay = options.learning_rate, options.decay

    def learning_rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        if self._decay == "constant":
            return self._learning_rate
        return self._learning_rate * (1 + math.cos(math.pi * epoch / max(self.epochs, 1))) / 2

    @abstractmethod
    def start(self) -> None:
        """Prepare the model for the first epoch."""

    def penalty(self) -> torch.Tensor | None:
        """What is added to the loss of each batch."""
        return None

    def before_epoch(self) -> None:  # noqa: B027
        """Note what `after_epoch` compares with."""

    @abstractmethod
    def after_epoch(self, epoch: int, validation: float | None) -> Metrics:
        """Learn from an epoch, counted from 0, and from the validation loss behind it."""

    def finish(self) -> None:  # noqa: B027
        """Leave the model as the next stage wants it."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything that the epochs changed in the stage: tensors, numbers, strings and lists."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
