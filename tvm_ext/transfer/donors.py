"""Which tuned models to take schedules from.

Gibson and Cano, "Transfer-Tuning" (PACT 2022), equation 6.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from tvm_ext.errors import TuningError

Ops = tuple[str, ...]


@dataclass(frozen=True)
class DonorScore:
    """How much a donor promises.

    Attributes
    ----------
    name : str
    score : float
        Sum over the classes of the target model of P_c**2 * sqrt(kernels of the class that the
        donor has); 0 when no class is shared.
    covered : float
        Share of the target's untuned time that lies in shared classes.
    """

    name: str
    score: float
    covered: float


def score(shares: Mapping[Ops, float], counts: Mapping[Ops, int]) -> float:
    """Equation 6.1.

    Parameters
    ----------
    shares : dict of class to float
        P_c: each class's share of the target's untuned time.
    counts : dict of class to int
        |W_Tc|: the donor's kernels of each class.
    """
    return sum(share**2 * sqrt(counts.get(ops, 0)) for ops, share in shares.items())


def rank_donors(
    shares: Mapping[Ops, float], donors: Mapping[str, Mapping[Ops, int]]
) -> list[DonorScore]:
    """All donors, the most promising first; equal ones in the order given.

    Parameters
    ----------
    shares : dict of class to float
        As `KernelClasses.shares`.
    donors : dict of str to dict
        For each donor its kernels by class, as `KernelClasses.counts`.
    """
    scores = [
        DonorScore(
            name, score(shares, counts), sum(p for ops, p in shares.items() if counts.get(ops))
        )
        for name, counts in donors.items()
    ]
    return sorted(scores, key=lambda donor: -donor.score)


def choose_donors(
    shares: Mapping[Ops, float],
    donors: Mapping[str, Mapping[Ops, int]],
    top: int | None = 1,
) -> list[str]:
    """Names of the `top` donors that share a class; all of them when `top` is None (pooled mode).

    Raises
    ------
    TuningError
        `top` isn't positive.
    """
    if top is not None and top < 1:
        raise TuningError(f"top={top}; allowed: 1 or more, or None for all donors")
    useful = [donor.name for donor in rank_donors(shares, donors) if donor.score > 0]
    return useful[:top]
