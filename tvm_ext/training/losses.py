"""What a student loses by differing from its teacher."""

from __future__ import annotations

import torch
from torch.nn import functional as F


def distillation_loss(
    student: torch.Tensor, teacher: torch.Tensor, temperature: float
) -> torch.Tensor:
    """T^2 KL(softmax(teacher / T) || softmax(student / T)), the mean over the batch.

    Parameters
    ----------
    student, teacher : torch.Tensor
        Logits, (batch, classes, ...); further dimensions are summed over.
    temperature : float
        T. Its square keeps the gradients' size (Hinton, Vinyals and Dean 2015, section 2).

    Returns
    -------
    torch.Tensor
        A scalar.
    """
    log_student = F.log_softmax(student / temperature, dim=1)
    log_teacher = F.log_softmax(teacher / temperature, dim=1)
    divergence = F.kl_div(log_student, log_teacher, reduction="batchmean", log_target=True)
    return divergence * temperature**2


def attention_map(features: torch.Tensor, power: float) -> torch.Tensor:
    """The sum over the channels of |F|^power, flattened, with norm 1.

    Parameters
    ----------
    features : torch.Tensor
        (batch, channels, ...).
    power : float

    Returns
    -------
    torch.Tensor
        (batch, positions).
    """
    return F.normalize(features.abs().pow(power).sum(1).flatten(1), dim=1)


def attention_loss(student: torch.Tensor, teacher: torch.Tensor, power: float) -> torch.Tensor:
    """The squared distance of two attention maps, the mean over the batch.

    Parameters
    ----------
    student, teacher : torch.Tensor
        Feature maps, (batch, channels, ...); their channels may differ.
    power : float

    Returns
    -------
    torch.Tensor
        A scalar.
    """
    difference = attention_map(student, power) - attention_map(teacher, power)
    return difference.square().sum(1).mean()
