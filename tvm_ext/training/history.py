"""What is kept of every epoch of a training run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Metrics:
    """What a stage says of an epoch.

    Attributes
    ----------
    rho : float or None
        The penalty of ADMM.
    primal_residual : float or None
        |W - Z| / |W| over all pruned weights.
    dual_residual : float or None
        |Z - Z before| / |W|, as well.
    frozen : tuple of str
        Names of the modules that the next epoch doesn't train.
    stop : bool
        The stage is over, whether or not epochs are left.
    """

    rho: float | None = None
    primal_residual: float | None = None
    dual_residual: float | None = None
    frozen: tuple[str, ...] = ()
    stop: bool = False


@dataclass(frozen=True)
class Epoch:
    """One epoch of a run.

    Attributes
    ----------
    stage : str
        ``"admm"``, ``"fine_tune"``, ``"warm_up"`` or ``"lottery"``.
    number : int
        Round, from 0.
    epoch : int
        In the stage, from 0.
    learning_rate : float
    loss : float
        Mean over the batches, with distillation and attention transfer, without the penalty.
    penalty : float
        Mean over the batches of what a stage added to the loss.
    validation : float or None
        What the user's `validate` returned after the epoch.
    metrics : Metrics
    """

    stage: str
    number: int
    epoch: int
    learning_rate: float
    loss: float
    penalty: float
    validation: float | None
    metrics: Metrics

    def to_dict(self) -> dict[str, Any]:
        """The same in dictionaries, lists, strings and numbers."""
        record = asdict(self)
        record["metrics"]["frozen"] = list(self.metrics.frozen)
        return record

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Epoch:
        """What `to_dict` was made from."""
        metrics = {**record["metrics"], "frozen": tuple(record["metrics"]["frozen"])}
        return cls(**{**record, "metrics": Metrics(**metrics)})
