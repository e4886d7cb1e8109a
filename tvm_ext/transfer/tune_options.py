"""What tuning may be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tvm_ext.errors import TuningError
from tvm_ext.transfer.tune_measure import MeasureOptions
from tvm_ext.transfer.tune_search import SearchOptions
from tvm_ext.transfer.tune_whole import RoundOptions

METHODS = ("transfer", "search", "transfer+search")


@dataclass(frozen=True)
class TuningProgress:
    """Where a run is.

    Attributes
    ----------
    elapsed_s : float
        Since it started.
    measured, failed : int
        Candidates, failed ones included, and those that failed.
    latency_us : float
        Estimate for the whole model: each layer's time in the default plan, or its kernel's best.
    layer : str
        The kernel that was measured last, by its first layer.
    """

    elapsed_s: float
    measured: int
    failed: int
    latency_us: float
    layer: str


def _silent(_: TuningProgress) -> None:
    pass


@dataclass(frozen=True)
class TuningOptions:
    """Options of `tvm_ext.tune`, checked.

    Attributes
    ----------
    method : str
        ``"transfer"``, ``"search"`` or ``"transfer+search"``.
    budget_s : float, optional
        Seconds for measuring candidates, from the start of the run; None for no limit, 0 for no
        measurement at all.
    trials : int, optional
        The most candidates to measure, those that the store has from earlier runs included; None
        for no limit.
    top_donors : int, optional
        Take schedules from so many donors, those that equation 6.1 ranks first; None for all.
    seed : int
        Of the search.
    progress : callable
        Called after each measured batch.
    measure, search, rounds : MeasureOptions, SearchOptions, RoundOptions

    Raises
    ------
    TuningError
        A value is out of range, or they don't go together.
    """

    method: str = "transfer"
    budget_s: float | None = None
    trials: int | None = None
    top_donors: int | None = None
    seed: int = 1
    progress: Callable[[TuningProgress], None] = _silent
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    rounds: RoundOptions = field(default_factory=RoundOptions)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise TuningError(f"method {self.method!r}; allowed: {', '.join(METHODS)}")
        if self.budget_s is not None and not self.budget_s >= 0:
            raise TuningError(f"budget_s={self.budget_s}; allowed: 0 or more seconds, or None")
        if self.trials is not None and self.trials < 1:
            raise TuningError(f"trials={self.trials}; allowed: 1 or more, or None")
        if self.top_donors is not None and self.top_donors < 1:
            raise TuningError(f"top_donors={self.top_donors}; allowed: 1 or more, or None")
        if self.seed < 1:
            raise TuningError(f"seed={self.seed}; allowed: 1 or more")
        if self.searches and self.budget_s == 0:
            raise TuningError(f"method {self.method!r} measures; with budget_s=0 use 'transfer'")
        if self.searches and self.budget_s is None and self.trials is None:
            raise TuningError(f"method {self.method!r} doesn't end alone; give budget_s or trials")

    @property
    def transfers(self) -> bool:
        """Whether schedules are taken from donors."""
        return "transfer" in self.method

    @property
    def searches(self) -> bool:
        """Whether new schedules are searched for."""
        return "search" in self.method
