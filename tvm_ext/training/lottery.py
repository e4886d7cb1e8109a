"""Lottery tickets: train, drop the smallest weights, rewind the others, train again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tvm_ext.errors import OptionError
from tvm_ext.passes.pruning.lottery import LotteryTicket
from tvm_ext.training.assignment import default_weights, named_weights
from tvm_ext.training.checkpoint import open_checkpoint
from tvm_ext.training.history import Metrics
from tvm_ext.training.masked_stage import MaskedStage
from tvm_ext.training.masks import Masks
from tvm_ext.training.objective import Loss, Objective
from tvm_ext.training.options import FineTune
from tvm_ext.training.result import TrainingResult
from tvm_ext.training.run import MakeOptimizer, Run, Validate, check_early_stop, check_seed
from tvm_ext.training.snapshot import Snapshot
from tvm_ext.training.stage import Stage
from tvm_ext.training.weights import Weight, prunable_weights


class WarmUpStage(Stage):
    """Epochs of early training, whose end is what tickets are rewound to."""

    kind = "warm_up"

    def __init__(self, options: FineTune, snapshot: Snapshot) -> None:
        super().__init__(0, options)
        self._snapshot = snapshot

    def start(self) -> None:
        """Nothing has to be prepared."""

    def after_epoch(self, epoch: int, validation: float | None) -> Metrics:
        """There is nothing to say."""
        return Metrics()

    def finish(self) -> None:
        """Keep the model as it is."""
        self._snapshot.take()

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing."""


class LotteryStage(MaskedStage):
    """The training of one ticket.

    Parameters
    ----------
    ticket : LotteryTicket
        Says what is dropped.
    weights : sequence of Weight
        Those that tickets are drawn from.
    snapshot : Snapshot
        Of early training.
    *args
        As of `MaskedStage`.
    """

    kind = "lottery"

    def __init__(
        self, ticket: LotteryTicket, weights: Sequence[Weight], snapshot: Snapshot, *args: Any
    ) -> None:
        super().__init__(*args)
        self._ticket, self._weights, self._snapshot = ticket, weights, snapshot

    def start(self) -> None:
        """Drop the smallest of the trained weights, and rewind the whole model."""
        trained = {w.name: w.array() for w in self._weights}
        kept = {w.name: torch.ones_like(w.parameter, dtype=torch.bool) for w in self._weights}
        kept.update(self._masks.get())
        if self.number:
            density = self._ticket.densities[self.number]
            masks = {name: mask.cpu().numpy() for name, mask in kept.items()}
            chosen = self._ticket.next_masks(trained, masks, density)
            kept = {name: torch.tensor(m, device=kept[name].device) for name, m in chosen.items()}
        self._snapshot.restore()
        self._masks.set(kept)


def find_ticket(
    model: nn.Module,
    loader: Iterable[Any],
    loss: Loss,
    ticket: LotteryTicket,
    *,
    layers: str | Iterable[str] | None = None,
    warm_up: FineTune = FineTune(epochs=1, decay="constant"),  # noqa: B008
    training: FineTune = FineTune(),  # noqa: B008
    optimizer: MakeOptimizer = torch.optim.Adam,
    validate: Validate | None = None,
    checkpoint: str | Path | None = None,
    seed: int = 0,
    progress: bool = True,
) -> TrainingResult:
    """Find a sparse network that can be trained from early weights, and train it.

    Parameters
    ----------
    model : torch.nn.Module
        As initialised. It isn't changed.
    loader, loss
        As for `admm_prune`.
    ticket : LotteryTicket
        The densities of the rounds, and what is dropped in each.
    layers : str or iterable of str, optional
        Patterns (as of `fnmatch`) of names of layers, as for `admm_prune`; by default all but the
        first convolution and a dense layer at the end.
    warm_up : FineTune
        The early training; rewinding goes to its end. Zero epochs rewind to the initial weights.
    training : FineTune
        Of each ticket.
    optimizer, validate, checkpoint, seed, progress
        As for `admm_prune`.

    Returns
    -------
    TrainingResult
        The last ticket, trained.

    Raises
    ------
    OptionError, PruningError, TrainingError, CheckpointError, ArtifactError
        As from `admm_prune`.

    Notes
    -----
    Frankle and Carbin 2019, "The lottery ticket hypothesis"; the rewinding to early weights is from
    Frankle et al. 2020, "Linear mode connectivity and the lottery ticket hypothesis". Biases and
    normalisation are rewound too.
    """
    check_seed(seed)
    check_early_stop("training", training, validate)
    if training.early_stop is not None and training.early_stop.tolerance is not None:
        raise OptionError(
            f"training.early_stop.tolerance is {training.early_stop.tolerance}; allowed is None: "
            "there is no trained dense model to measure it from"
        )
    student = deepcopy(model)
    weights = prunable_weights(student)
    chosen = default_weights(weights) if layers is None else named_weights(weights, layers)
    masks, snapshot = Masks(weights), Snapshot(student)
    run = Run(
        model=student, masks=masks, loader=loader, objective=Objective(student, loss, student),
        optimizer=optimizer, validate=validate, seed=seed, progress=progress, snapshot=snapshot,
        checkpoint=open_checkpoint(
            checkpoint, model=model, optimizer=optimizer, seed=seed, ticket=ticket,
            layers=tuple(w.name for w in chosen), options=(warm_up, training),
        ),
    )  # fmt: skip
    dense = run.dense_validation()
    stages: list[Stage] = [WarmUpStage(warm_up, snapshot)]
    for number in range(len(ticket.densities)):
        common = (number, training, student, masks, dense)
        stages.append(LotteryStage(ticket, chosen, snapshot, *common))
    history = run.execute(stages)
    return TrainingResult(
        model=student, masks=masks.arrays(), schemes={}, skipped={}, history=history,
        dense_validation=dense,
    )  # fmt: skip
