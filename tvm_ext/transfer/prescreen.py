"""A learned order of candidates, so that only the best of them are compiled and measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm

from tvm_ext.schedules.tuned import apply_trace
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.prescreen_features import features

if TYPE_CHECKING:
    # It takes two seconds, and all of SciPy, to import: only who ranks waits for it.
    import xgboost
from tvm_ext.transfer.tune_candidates import Candidate
from tvm_ext.transfer.tuned_record import TunedRecord

# Fewer records say too little; more cost seconds of the budget.
LEAST_RECORDS, MOST_RECORDS = 16, 300
# Octaves behind a workload's fastest record, from which on it doesn't matter how many they are.
_SLOWEST = 6.0
_ROUNDS = 100
_TREES: dict[str, Any] = {
    "objective": "reg:squarederror", "max_depth": 5, "eta": 0.1, "min_child_weight": 1.0,
    "subsample": 0.9, "colsample_bytree": 0.5, "tree_method": "hist",
    # On so little data, threads wait more than they work.
    "nthread": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Prescreen:
    """Gradient-boosted trees that predict how near a schedule is to the best of its kernel.

    A score is the octaves between the time of the kernel's fastest record and the schedule's,
    negative: 0 for the best one, -1 for one of twice its time.

    Attributes
    ----------
    trees : Booster
    cpu : CpuTarget
    records : int
        So many it was trained on.
    """

    trees: xgboost.Booster
    cpu: CpuTarget
    records: int

    @classmethod
    def fit(cls, records: Sequence[TunedRecord], cpu: CpuTarget, seed: int = 1) -> Prescreen | str:
        """Learn from measured schedules; or say why not.

        Parameters
        ----------
        records : sequence of TunedRecord
            Of any kernels. Each is compared with the fastest one of its kernel, so that those of
            a kernel with a single record say nothing. Failed ones count as slow.
        cpu : CpuTarget
        seed : int
            The same seed and records give the same trees.
        """
        told = _sampled(_comparable(records), seed)
        mods, scores = [], []
        for record, score in told:
            try:
                function = apply_trace(record.function, record.trace)
            except (RuntimeError, ValueError, TypeError):
                # One that isn't a schedule teaches nothing.
                continue
            mods.append(tvm.IRModule({"main": function}))
            scores.append(score)
        if len(mods) < LEAST_RECORDS:
            return f"{len(mods)} comparable donors' records; pre-screening needs {LEAST_RECORDS}"
        import xgboost

        data = xgboost.DMatrix(features(mods, cpu), label=np.array(scores, "float32"), nthread=1)
        return cls(xgboost.train({**_TREES, "seed": seed}, data, _ROUNDS), cpu, len(mods))

    def rank(self, candidates: Sequence[Candidate]) -> tuple[list[int], np.ndarray]:
        """The candidates' numbers, the best first, and each candidate's score.

        Equal ones keep their order.

        Parameters
        ----------
        candidates : sequence of Candidate
            Of one kernel or several; a score compares schedules of one kernel.
        """
        if not candidates:
            return [], np.zeros(0, "float32")
        rows = features([c.mod for c in candidates], self.cpu)
        import xgboost

        scores = np.asarray(self.trees.predict(xgboost.DMatrix(rows, nthread=1)))
        return [int(i) for i in np.argsort(-scores, kind="stable")], scores

    def screened(
        self, candidates: Iterable[Candidate], share: float
    ) -> tuple[list[Candidate], int]:
        """The share of a kernel's candidates that is ranked first, and how many are left out.

        Parameters
        ----------
        candidates : iterable of Candidate
        share : float
            Of their number, rounded up.
        """
        every = list(candidates)
        order, _ = self.rank(every)
        kept = [every[i] for i in order[: ceil(share * len(every))]]
        return kept, len(every) - len(kept)


def _comparable(records: Sequence[TunedRecord]) -> list[tuple[TunedRecord, float]]:
    """The records of kernels that have several, with their scores."""
    by_kernel: dict[str, list[TunedRecord]] = {}
    for record in records:
        by_kernel.setdefault(record.workload, []).append(record)
    found = []
    for own in by_kernel.values():
        fastest = min(r.seconds for r in own)
        if len(own) >= 2 and np.isfinite(fastest):
            found += [
                (r, -_SLOWEST if r.failed else max(log2(fastest / r.seconds), -_SLOWEST))
                for r in own
            ]
    return found


def _sampled(
    records: list[tuple[TunedRecord, float]], seed: int
) -> list[tuple[TunedRecord, float]]:
    if len(records) <= MOST_RECORDS:
        return records
    chosen = np.random.default_rng(seed).choice(len(records), MOST_RECORDS, replace=False)
    return [records[i] for i in sorted(chosen)]
