"""The loss of a batch, with what a teacher adds to it."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any

import torch
from torch import nn

from tvm_ext.errors import OptionError
from tvm_ext.training import batches
from tvm_ext.training.losses import attention_loss, distillation_loss
from tvm_ext.training.options import AttentionTransfer, Distillation

Loss = Callable[[Any, Any], torch.Tensor]


class Objective:
    """What training minimises, apart from a stage's penalty; a context that watches modules.

    Parameters
    ----------
    student : torch.nn.Module
    loss : callable
        (outputs, targets) -> a scalar.
    teacher : torch.nn.Module
        In evaluation mode; it runs only where one of the next two is given.
    distillation : Distillation, optional
    attention : AttentionTransfer, optional

    Raises
    ------
    OptionError
        A pattern of `attention` matches no module of student or teacher, or the two don't have the
        same modules that match.
    """

    def __init__(
        self,
        student: nn.Module,
        loss: Loss,
        teacher: nn.Module,
        distillation: Distillation | None = None,
        attention: AttentionTransfer | None = None,
    ) -> None:
        self._student, self._teacher, self._loss = student, teacher, loss
        self._distillation, self._attention = distillation, attention
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self._seen: dict[tuple[str, str], torch.Tensor] = {}
        self._watched = _watched(student, teacher, attention.layers) if attention else ()

    def __enter__(self) -> Objective:
        for role, model in (("student", self._student), ("teacher", self._teacher)):
            for name in self._watched:
                hook = self._keep((role, name))
                self._hooks.append(model.get_submodule(name).register_forward_hook(hook))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for hook in self._hooks:
            hook.remove()

    def __call__(self, inputs: Any, targets: Any) -> torch.Tensor:
        """The loss of one batch: a scalar.

        Raises
        ------
        OptionError
            A teacher is to be followed in something that isn't a tensor of the right form.
        """
        outputs = batches.call(self._student, inputs)
        loss = self._loss(outputs, targets)
        if self._distillation is None and self._attention is None:
            return loss
        with torch.no_grad():
            wanted = batches.call(self._teacher, inputs)
        if self._distillation is not None:
            _check("Distillation", "the model's output", outputs, 2)
            alpha, temperature = self._distillation.alpha, self._distillation.temperature
            loss = (1 - alpha) * loss + alpha * distillation_loss(outputs, wanted, temperature)
        if self._attention is not None:
            parts = [
                attention_loss(
                    self._seen["student", name], self._seen["teacher", name], self._attention.power
                )
                for name in self._watched
            ]
            loss = loss + self._attention.beta / 2 * torch.stack(parts).sum()
        return loss

    def _keep(self, key: tuple[str, str]) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            _check("AttentionTransfer", f"the output of {key[1]!r}", output, 3)
            self._seen[key] = output

        return hook


def _check(option: str, what: str, value: Any, least: int) -> None:
    if not isinstance(value, torch.Tensor):
        raise OptionError(f"{option}: {what} is a {type(value).__name__}, not a tensor")
    if value.dim() < least:
        raise OptionError(
            f"{option}: {what} has {value.dim()} dimensions; it needs at least {least}"
        )


def _watched(student: nn.Module, teacher: nn.Module, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the modules that match a pattern."""
    names = [name for name, _ in student.named_modules() if name]
    others = {name for name, _ in teacher.named_modules()}
    found = []
    for pattern in patterns:
        matching = [name for name in names if fnmatchcase(name, pattern)]
        if not matching:
            raise OptionError(
                f"AttentionTransfer.layers: {pattern!r} matches no module of {', '.join(names)}"
            )
        found += matching
    missing = [name for name in found if name not in others]
    if missing:
        raise OptionError(f"AttentionTransfer.layers: the teacher has no {', '.join(missing)}")
    return tuple(dict.fromkeys(found))
