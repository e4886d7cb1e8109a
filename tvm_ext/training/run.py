"""Stages of training, one after the other, each epoch kept in a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import nn

from tvm_ext.errors import OptionError, TrainingError
from tvm_ext.training import batches
from tvm_ext.training.checkpoint import Checkpoint
from tvm_ext.training.history import Epoch
from tvm_ext.training.masks import Masks
from tvm_ext.training.objective import Objective
from tvm_ext.training.options import FineTune
from tvm_ext.training.progress import training_progress
from tvm_ext.training.randomness import isolated, random_state, set_random_state
from tvm_ext.training.snapshot import Snapshot
from tvm_ext.training.stage import Stage

MakeOptimizer: TypeAlias = Callable[..., torch.optim.Optimizer]
Validate: TypeAlias = Callable[[nn.Module], float]


@dataclass
class Run:
    """A training run.

    Attributes
    ----------
    model : torch.nn.Module
        What is trained, in place.
    masks : Masks
        Of the model.
    loader : iterable
        Of (inputs, targets).
    objective : Objective
    optimizer : callable
        (list of parameters, lr=learning rate) -> an optimizer; a new one for each stage.
    validate : callable, optional
        The model, in evaluation mode -> a loss, the lower the better.
    checkpoint : Checkpoint, optional
    seed : int
    progress : bool
    snapshot : Snapshot, optional
        That stages take and come back to.
    """

    model: nn.Module
    masks: Masks
    loader: Iterable[Any]
    objective: Objective
    optimizer: MakeOptimizer
    validate: Validate | None
    checkpoint: Checkpoint | None
    seed: int
    progress: bool
    snapshot: Snapshot | None = None

    def __post_init__(self) -> None:
        self._history: list[Epoch] = []
        # Fixed here: freezing changes later which of them want gradients.
        self._parameters = [p for p in self.model.parameters() if p.requires_grad]

    def execute(self, stages: Sequence[Stage]) -> tuple[Epoch, ...]:
        """Run the stages, from the checkpoint on if there is one.

        Raises
        ------
        CheckpointError, TrainingError, OptionError, PruningError
        """
        total = sum(stage.epochs for stage in stages)
        with (
            isolated(self.seed),
            self.objective,
            training_progress(total, self.progress) as tell,
        ):
            first, epoch, saved = self._resume()
            for number in range(first, len(stages)):
                done = sum(earlier.epochs for earlier in stages[:number])
                self._stage(number, stages[number], epoch, saved, partial(_tell, tell, done))
                epoch, saved = 0, {}
        self.model.eval()
        return tuple(self._history)

    def _stage(
        self,
        number: int,
        stage: Stage,
        epoch: int,
        saved: dict[str, Any],
        tell: Callable[..., None],
    ) -> None:
        """Train the epochs of a stage that are left."""
        optimizer = self.optimizer(self._parameters, lr=stage.learning_rate(0))
        if epoch:
            stage.load_state_dict(saved["stage"])
            optimizer.load_state_dict(saved["optimizer"])
        else:
            stage.start()
        while epoch < stage.epochs:
            tell(stage, epoch, self._history)
            self._history.append(self._epoch(stage, epoch, optimizer))
            epoch += 1
            if self._history[-1].metrics.stop:
                break
            if epoch < stage.epochs:
                state = {"stage": stage.state_dict(), "optimizer": optimizer.state_dict()}
                self._save(number, epoch, state)
        stage.finish()
        self._save(number + 1, 0, {})

    def _epoch(self, stage: Stage, epoch: int, optimizer: torch.optim.Optimizer) -> Epoch:
        """Train one epoch."""
        rate = stage.learning_rate(epoch)
        for group in optimizer.param_groups:
            group["lr"] = rate
        stage.before_epoch()
        self.model.train()
        device = batches.device_of(self.model)
        losses: list[float] = []
        penalties: list[float] = []
        for batch in self.loader:
            inputs, targets = batches.split(batch, device)
            optimizer.zero_grad(set_to_none=True)
            loss, penalty = self.objective(inputs, targets), stage.penalty()
            total = loss if penalty is None else loss + penalty
            if not math.isfinite(value := float(total.detach())):
                raise TrainingError(
                    f"{stage.kind} of round {stage.number}, epoch {epoch}, batch {len(losses)}: "
                    f"the loss is {value}; a lower learning rate may help"
                )
            total.backward()
            self.masks.zero_gradients()
            optimizer.step()
            self.masks.zero_weights()
            losses.append(float(loss.detach()))
            penalties.append(0.0 if penalty is None else float(penalty.detach()))
        if not losses:
            raise TrainingError("the data loader is empty")
        validation = self.validation_loss()
        return Epoch(
            stage=stage.kind, number=stage.number, epoch=epoch, learning_rate=rate,
            loss=math.fsum(losses) / len(losses), penalty=math.fsum(penalties) / len(losses),
            validation=validation, metrics=stage.after_epoch(epoch, validation),
        )  # fmt: skip

    def dense_validation(self) -> float | None:
        """`validation_loss` before the first stage, with the run's random numbers."""
        with isolated(self.seed):
            return self.validation_loss()

    def validation_loss(self) -> float | None:
        """What `validate` says of the model as it is; None without it.

        Raises
        ------
        TrainingError
            It isn't a number.
        """
        if self.validate is None:
            return None
        self.model.eval()
        with torch.no_grad():
            value = float(self.validate(self.model))
        if math.isnan(value):
            raise TrainingError("validate returned NaN")
        return value

    def _save(self, stage: int, epoch: int, state: dict[str, Any]) -> None:
        if self.checkpoint is None:
            return
        self.checkpoint.save(
            {
                "position": [stage, epoch],
                "model": self.model.state_dict(),
                "masks": self.masks.get(),
                "history": [done.to_dict() for done in self._history],
                "random": random_state(self.loader),
                "snapshot": self.snapshot.state_dict() if self.snapshot else {},
                **state,
            }
        )

    def _resume(self) -> tuple[int, int, dict[str, Any]]:
        """The stage and epoch to go on with, and what the checkpoint says of the stage."""
        saved = None if self.checkpoint is None else self.checkpoint.load()
        if saved is None:
            return 0, 0, {}
        self.model.load_state_dict(saved["model"])
        device = batches.device_of(self.model)
        self.masks.set({name: kept.to(device) for name, kept in saved["masks"].items()})
        self._history = [Epoch.from_dict(record) for record in saved["history"]]
        set_random_state(self.loader, saved["random"])
        if self.snapshot is not None:
            self.snapshot.load_state_dict(saved["snapshot"])
        stage, epoch = saved["position"]
        return stage, epoch, saved


def _tell(
    tell: Callable[[int, str], None], done: int, stage: Stage, epoch: int, history: list[Epoch]
) -> None:
    loss = f", loss {history[-1].loss:.4f}" if history else ""
    tell(done + epoch, f"round {stage.number + 1}, {stage.kind}{loss}")


def check_seed(seed: Any) -> None:
    """Refuse what PyTorch doesn't take as a seed.

    Raises
    ------
    OptionError
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise OptionError(f"seed is {seed!r}; allowed are whole numbers in [0, 2**63)")


def check_early_stop(option: str, options: FineTune, validate: Validate | None) -> None:
    """Refuse an early stop without a loss to stop by.

    Raises
    ------
    OptionError
    """
    if options.early_stop is not None and validate is None:
        raise OptionError(f"{option}.early_stop needs a validation loss: give validate")
