"""Pruning with training in the loop, on PyTorch modules (``pip install 'tvm_ext[torch]'``)."""

from tvm_ext.training.torch_required import check_torch

check_torch()

from tvm_ext.training.admm_prune import admm_prune  # noqa: E402
from tvm_ext.training.evaluate import accuracy, mean_loss  # noqa: E402
from tvm_ext.training.history import Epoch, Metrics  # noqa: E402
from tvm_ext.training.lottery import find_ticket  # noqa: E402
from tvm_ext.training.options import (  # noqa: E402
    ADMM,
    AttentionTransfer,
    Distillation,
    EarlyStop,
    FineTune,
    Freezing,
)
from tvm_ext.training.result import TrainingResult  # noqa: E402

__all__ = [
    "ADMM",
    "AttentionTransfer",
    "Distillation",
    "EarlyStop",
    "Epoch",
    "FineTune",
    "Freezing",
    "Metrics",
    "TrainingResult",
    "accuracy",
    "admm_prune",
    "find_ticket",
    "mean_loss",
]
