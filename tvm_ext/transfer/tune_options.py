"""What tuning may be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tvm_ext.errors import TuningError
from tvm_ext.transfer.tune_candidates import RECORDS_PER_KERNEL
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
        The kernel that was measured last, by its first layer; or empty.
    screened : int
        Candidates that the pre-screening left out so far.
    note : str
        What isn't done as asked, and why: no pre-screening, or kernels that are searched in a part
        of their space or not at all; or empty.
    """

    elapsed_s: float
    measured: int
    failed: int
    latency_us: float
    layer: str
    screened: int = 0
    note: str = ""


def tracker_address(text: str) -> tuple[str, int]:
    """Host and port of a tracker.

    Raises
    ------
    TuningError
        The text isn't ``host:port``.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise TuningError(f"tracker={text!r}; allowed: host:port, such as 192.168.0.2:9190")
    return host, int(port)


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
    prescreen : float
        Share of each kernel's transferred candidates that is measured: those that a cost model,
        trained on the donors' records, ranks first. With 1 all are, in the order of similarity.
    records_per_kernel : int
        So many records of each donor kernel are tried, the fastest. More of them give the
        pre-screening more to choose from.
    tracker : str, optional
        ``"host:port"`` of TVM's RPC tracker: candidates are timed on its servers, whose CPU is
        like this one.
    key : str
        The servers' key at the tracker.
    seed : int
        Of the search and the pre-screening.
    progress : callable
        Called after each measured batch, and once the pre-screening is trained.
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
    prescreen: float = 1.0
    records_per_kernel: int = RECORDS_PER_KERNEL
    tracker: str | None = None
    key: str = ""
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
        if not 0 < self.prescreen <= 1:
            raise TuningError(f"prescreen={self.prescreen}; allowed: above 0, at most 1")
        if self.records_per_kernel < 1:
            raise TuningError(f"records_per_kernel={self.records_per_kernel}; allowed: 1 or more")
        if self.tracker is not None:
            tracker_address(self.tracker)
        if (self.tracker is None) != (not self.key):
            raise TuningError(
                f"tracker={self.tracker!r}, key={self.key!r}; allowed: both, or neither"
            )
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
