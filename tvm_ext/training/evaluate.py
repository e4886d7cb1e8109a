"""How good a model is on a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from tvm_ext.errors import TrainingError
from tvm_ext.training import batches
from tvm_ext.training.objective import Loss


def mean_loss(model: nn.Module, loader: Iterable[Any], loss: Loss) -> float:
    """The loss over a data set: the mean over its samples, if the loss is one over a batch's.

    Parameters
    ----------
    model : torch.nn.Module
        It is evaluated in evaluation mode, and left in the mode that it was in.
    loader : iterable
        Of (inputs, targets).
    loss : callable
        (outputs, targets) -> a scalar.

    Raises
    ------
    TrainingError
        The loader is empty, or gives something else.
    """
    total, count = 0.0, 0
    for outputs, targets in _outputs(model, loader):
        size = len(targets)
        total += float(loss(outputs, targets)) * size
        count += size
    return total / count


def accuracy(model: nn.Module, loader: Iterable[Any]) -> float:
    """The share of samples whose largest output is the target's class (top-1), in [0, 1].

    Parameters
    ----------
    model : torch.nn.Module
        It returns (batch, classes, ...). It is evaluated in evaluation mode, and left in the mode
        that it was in.
    loader : iterable
        Of (inputs, classes), the latter (batch, ...).

    Raises
    ------
    TrainingError
        The loader is empty, or gives something else.
    """
    right, count = 0, 0
    for outputs, targets in _outputs(model, loader):
        right += int((outputs.argmax(1) == targets).sum())
        count += targets.numel()
    return right / count


def _outputs(model: nn.Module, loader: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    training, empty = model.training, True
    model.eval()
    try:
        for batch in loader:
            empty = False
            inputs, targets = batches.split(batch, batches.device_of(model))
            with torch.no_grad():
                outputs = batches.call(model, inputs)
            yield outputs, targets
    finally:
        model.train(training)
    if empty:
        raise TrainingError("the data loader is empty")
