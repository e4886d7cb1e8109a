"""Training of the weights that are kept, with modules frozen and a best epoch on the way."""

from __future__ import annotations

from typing import Any

from torch import nn

from tvm_ext.training.assignment import Assignment
from tvm_ext.training.freezing import Freezer
from tvm_ext.training.history import Metrics
from tvm_ext.training.masks import Masks
from tvm_ext.training.options import FineTune
from tvm_ext.training.stage import Stage
from tvm_ext.training.stopping import Stopper


class MaskedStage(Stage):
    """Epochs that leave zeros alone; what is zero is decided by `start`.

    Parameters
    ----------
    number : int
    options : FineTune
    model : torch.nn.Module
    masks : Masks
        Of the model.
    dense : float or None
        Validation loss of the dense model, from which an early stop is measured.
    """

    def __init__(
        self, number: int, options: FineTune, model: nn.Module, masks: Masks, dense: float | None
    ) -> None:
        super().__init__(number, options)
        self._masks = masks
        self._freezer = Freezer(model, options.freezing) if options.freezing else None
        stop = options.early_stop
        self._stopper = Stopper(model, stop, dense) if stop and dense is not None else None

    def before_epoch(self) -> None:
        """Note the parameters, if some may be frozen."""
        if self._freezer is not None:
            self._freezer.note()

    def after_epoch(self, epoch: int, validation: float | None) -> Metrics:
        """Freeze, and decide whether to stop."""
        if self._freezer is not None:
            self._freezer.update(epoch)
        stop = (
            self._stopper is not None
            and validation is not None
            and self._stopper.update(validation)
        )
        return Metrics(frozen=self._freezer.frozen if self._freezer else (), stop=stop)

    def finish(self) -> None:
        """Take the best epoch's weights, and let all modules be trained again."""
        if self._stopper is not None:
            self._stopper.restore()
        if self._freezer is not None:
            self._freezer.thaw()

    def state_dict(self) -> dict[str, Any]:
        """What is frozen, and the best epoch."""
        return {
            "frozen": list(self._freezer.frozen) if self._freezer else [],
            "stopper": self._stopper.state_dict() if self._stopper else {},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with what is frozen, and the best epoch."""
        if self._freezer is not None:
            self._freezer.freeze(tuple(state["frozen"]))
        if self._stopper is not None:
            self._stopper.load_state_dict(state["stopper"])


class FineTuneStage(MaskedStage):
    """Prune by the schemes' masks, then train what is left.

    Parameters
    ----------
    assignment : Assignment
        Whose masks are taken, of the weights as they are.
    *args
        As of `MaskedStage`.
    """

    kind = "fine_tune"

    def __init__(self, assignment: Assignment, *args: Any) -> None:
        super().__init__(*args)
        self._assignment = assignment

    def start(self) -> None:
        """Prune."""
        self._masks.set(self._assignment.masks())
