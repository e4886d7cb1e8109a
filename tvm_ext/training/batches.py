"""What a data loader gives, and how a model is called on it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tvm_ext.errors import TrainingError


def split(batch: Any, device: torch.device) -> tuple[Any, Any]:
    """A batch's inputs and targets, on a device.

    Raises
    ------
    TrainingError
        The batch isn't a pair.
    """
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        size = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
        raise TrainingError(
            f"the data loader gave a {type(batch).__name__}{size}; "
            "a batch has to be a pair: inputs and targets"
        )
    return _moved(batch[0], device), _moved(batch[1], device)


def call(model: nn.Module, inputs: Any) -> Any:
    """The model's outputs: a tuple or list is its arguments, a dictionary its named ones."""
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)


def device_of(model: nn.Module) -> torch.device:
    """Where the model's first parameter is."""
    return next(model.parameters()).device


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, dict):
        return {key: _moved(item, device) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_moved(item, device) for item in value]
    return value
