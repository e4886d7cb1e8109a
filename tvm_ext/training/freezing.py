"""Modules that hardly change, which are no longer trained."""

from __future__ import annotations

import math

import torch
from torch import nn

from tvm_ext.training.options import Freezing


class Freezer:
    """Freezes modules by how much an epoch changed them; see `Freezing`.

    Parameters
    ----------
    model : torch.nn.Module
    options : Freezing
    """

    def __init__(self, model: nn.Module, options: Freezing) -> None:
        self._options = options
        self._modules = {
            name: own
            for name, module in model.named_modules()
            if (own := [p for p in module.parameters(recurse=False) if p.requires_grad])
        }
        self._before: dict[str, list[torch.Tensor]] = {}
        self.frozen: tuple[str, ...] = ()

    def note(self) -> None:
        """Keep the parameters that an epoch will change."""
        self._before = {
            name: [p.detach().clone() for p in own]
            for name, own in self._modules.items()
            if name not in self.frozen
        }

    def update(self, epoch: int) -> None:
        """Freeze what changed little in an epoch, counted from 0, since `note`."""
        if epoch + 1 < self._options.after:
            return
        change = {name: _change(self._modules[name], old) for name, old in self._before.items()}
        limit = self._options.threshold * max(change.values(), default=0.0)
        self.freeze(self.frozen + tuple(n for n, value in change.items() if value < limit))

    def freeze(self, names: tuple[str, ...]) -> None:
        """Freeze these modules."""
        self.frozen = names
        for name in names:
            for parameter in self._modules[name]:
                parameter.requires_grad_(False)
                # An optimizer would go on with the last gradient.
                parameter.grad = None

    def thaw(self) -> None:
        """Let everything be trained again."""
        for name in self.frozen:
            for parameter in self._modules[name]:
                parameter.requires_grad_(True)
        self.frozen = ()


def _change(parameters: list[nn.Parameter], before: list[torch.Tensor]) -> float:
    """|W - W before| / |W before| over some parameters."""
    moved = sum(
        float((p.detach() - old).square().sum()) for p, old in zip(parameters, before, strict=True)
    )
    size = sum(float(old.square().sum()) for old in before)
    return math.sqrt(moved / size if size else moved)
