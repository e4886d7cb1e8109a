"""What a training run is told, checked when it is said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tvm_ext.errors import OptionError

_DECAYS = ("constant", "cosine")


@dataclass(frozen=True)
class EarlyStop:
    """When fine-tuning ends before its last epoch, by the validation loss.

    The weights of the best epoch are taken in the end, whether or not it stopped early.

    Attributes
    ----------
    patience : int or None
        Stop after so many epochs in a row without a better loss; None: never for that reason.
    tolerance : float or None
        Stop as soon as the loss is at most the dense model's plus this: ICE-Pick's threshold of
        accuracy loss (Hu, Gibson and Cano 2023). None: never for that reason.
    """

    patience: int | None = 5
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.patience is not None:
            _at_least("EarlyStop.patience", self.patience, 1)
        if self.tolerance is not None:
            _not_negative("EarlyStop.tolerance", self.tolerance)


@dataclass(frozen=True)
class Freezing:
    """Which modules fine-tuning leaves alone: those that hardly change, as ICE-Pick does.

    After each epoch from `after` on, the parameters of a module that changed by less than
    `threshold` times what the module changed that changed most are frozen until the fine-tuning
    ends. Change is |W - W before the epoch| / |W before the epoch|, over all parameters that the
    module itself holds. The module that changes most is never frozen.

    Attributes
    ----------
    threshold : float
        Share of the largest change, in [0, 1).
    after : int
        Epochs in which all modules are trained.
    """

    threshold: float = 0.1
    after: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise OptionError(
                f"Freezing.threshold is {self.threshold!r}; allowed are shares in [0, 1)"
            )
        _at_least("Freezing.after", self.after, 1)


@dataclass(frozen=True)
class ADMM:
    """Training towards what a scheme allows (Zhang et al. 2018, section 3).

    In each epoch the optimizer minimises the loss plus rho/2 |W - Z + U|^2; after it,
    Z = projection(W + U) and U += W - Z.

    Attributes
    ----------
    epochs : int
    rho : tuple of (float, float)
        Penalty of the first and of the last epoch; it grows by the same factor between them. The
        scaled dual U shrinks by that factor (Boyd et al. 2011, section 3.4.1).
    learning_rate : float
        Of the first epoch.
    decay : str
        Of the learning rate over the epochs: ``"constant"`` or ``"cosine"`` (to almost zero).
    """

    epochs: int = 20
    rho: tuple[float, float] = (1e-2, 1.0)
    learning_rate: float = 1e-3
    decay: str = "constant"

    def __post_init__(self) -> None:
        _check_epochs("ADMM", self.epochs, self.learning_rate, self.decay)
        if len(self.rho) != 2:
            raise OptionError(f"ADMM.rho is {self.rho!r}; allowed is a pair: first and last")
        for value in self.rho:
            _positive("ADMM.rho", value)


@dataclass(frozen=True)
class FineTune:
    """Training of the weights that are kept, the others staying zero.

    Attributes
    ----------
    epochs : int
    learning_rate : float
        Of the first epoch.
    decay : str
        Of the learning rate over the epochs: ``"constant"`` or ``"cosine"`` (to almost zero).
    freezing : Freezing, optional
    early_stop : EarlyStop, optional
        Needs a validation loss.
    """

    epochs: int = 20
    learning_rate: float = 1e-3
    decay: str = "cosine"
    freezing: Freezing | None = None
    early_stop: EarlyStop | None = None

    def __post_init__(self) -> None:
        _check_epochs("FineTune", self.epochs, self.learning_rate, self.decay)


@dataclass(frozen=True)
class Distillation:
    """Learning from the teacher's outputs (Hinton, Vinyals and Dean 2015, section 2).

    The loss becomes (1 - alpha) loss + alpha T^2 KL(softmax(teacher / T) || softmax(student / T)),
    T being the temperature. The model has to return a tensor of logits, (batch, classes, ...).

    Attributes
    ----------
    temperature : float
    alpha : float
        Share of the teacher, in [0, 1].
    """

    temperature: float = 4.0
    alpha: float = 0.5

    def __post_init__(self) -> None:
        _positive("Distillation.temperature", self.temperature)
        if not 0 <= self.alpha <= 1:
            raise OptionError(f"Distillation.alpha is {self.alpha!r}; allowed are shares in [0, 1]")


@dataclass(frozen=True)
class AttentionTransfer:
    """Learning where the teacher looks (Zagoruyko and Komodakis 2017, section 3.1).

    The attention map of a feature map F, (batch, channels, ...), is q = sum over the channels of
    |F|^power, flattened and divided by its norm. The loss grows by beta/2 times the sum over the
    layers of the mean over the batch of |q student - q teacher|^2. (The norm is squared: a student
    that starts as its teacher has no gradient of the norm itself.)

    Attributes
    ----------
    layers : tuple of str
        Patterns (as of `fnmatch`) of names of modules whose outputs are compared.
    beta : float
    power : float
        At least 1.
    """

    layers: tuple[str, ...]
    beta: float = 1.0
    power: float = 2.0

    def __post_init__(self) -> None:
        if not self.layers or isinstance(self.layers, str):
            raise OptionError(
                f"AttentionTransfer.layers is {self.layers!r}; allowed are one or more patterns"
            )
        _not_negative("AttentionTransfer.beta", self.beta)
        if not 1 <= self.power < math.inf:
            raise OptionError(
                f"AttentionTransfer.power is {self.power!r}; allowed are finite numbers from 1 on"
            )


def _check_epochs(owner: str, epochs: Any, learning_rate: float, decay: str) -> None:
    _at_least(f"{owner}.epochs", epochs, 0)
    _positive(f"{owner}.learning_rate", learning_rate)
    if decay not in _DECAYS:
        raise OptionError(f"{owner}.decay is {decay!r}; allowed are {', '.join(_DECAYS)}")


def _at_least(option: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"{option} is {value!r}; allowed are whole numbers from {least} on")


def _positive(option: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise OptionError(f"{option} is {value!r}; allowed are positive finite numbers")


def _not_negative(option: str, value: float) -> None:
    if not (value >= 0 and math.isfinite(value)):
        raise OptionError(f"{option} is {value!r}; allowed are finite numbers from 0 on")
