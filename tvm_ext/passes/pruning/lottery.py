"""Iterative magnitude pruning with rewinding, which finds lottery tickets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tvm_ext.errors import OptionError, PruningError
from tvm_ext.passes.pruning.finite import check_finite
from tvm_ext.passes.pruning.magnitude import SCOPES
from tvm_ext.passes.pruning.options import check_choice, check_density
from tvm_ext.passes.pruning.ranking import count_of, largest

Weights = Mapping[str, np.ndarray]
Masks = dict[str, np.ndarray]


@dataclass(frozen=True)
class LotteryTicket:
    """Train, drop some of the smallest weights that remain, rewind the others, and train again.

    Parameters
    ----------
    density : float
        Share of the weights that the last ticket keeps, in (0, 1].
    rate : float
        Share of the remaining weights that a round drops, in (0, 1); the last may drop fewer.
    scope : str
        ``"global"``: the weights of all layers compete. ``"layer"``: each layer drops its share.

    Raises
    ------
    OptionError
        An option has another value.

    Notes
    -----
    The lottery ticket hypothesis of Frankle and Carbin (2019), with rewinding to weights of early
    in training, as the models of Tiramisu (2020, section 3) are pruned.

    Examples
    --------
    ::

        rounds = LotteryTicket(density=0.1).rounds(early)
        for ticket in rounds:
            rounds.finish(train(ticket.weights, ticket.masks))
    """

    density: float
    rate: float = 0.2
    scope: str = "global"

    def __post_init__(self) -> None:
        check_density("density", self.density)
        check_density("rate", self.rate)
        if self.rate == 1:
            raise OptionError(f"rate={self.rate!r} drops everything; it has to be below 1")
        check_choice("scope", self.scope, SCOPES)

    @property
    def densities(self) -> tuple[float, ...]:
        """Share of the weights in each round; all of them in the first."""
        shares = [1.0]
        while shares[-1] > self.density:
            shares.append(max(self.density, shares[-1] * (1 - self.rate)))
        return tuple(shares)

    def next_masks(self, trained: Weights, masks: Weights, density: float) -> Masks:
        """Of the weights that remain, those of the largest magnitude.

        Parameters
        ----------
        trained : Mapping[str, ndarray]
            Name of a layer -> its weights at the end of a round.
        masks : Mapping[str, ndarray of bool]
            What remained in that round.
        density : float
            Share of all weights that is kept.
        """
        # What is gone ranks below a weight that has become zero, and stays gone.
        scores = {n: np.where(masks[n], np.abs(w), -1.0) for n, w in trained.items()}
        if self.scope == "layer":
            return {n: largest(s, count_of(density, s.size)) for n, s in scores.items()}
        flat = np.concatenate([s.reshape(-1) for s in scores.values()])
        ends = np.cumsum([s.size for s in scores.values()])[:-1]
        parts = np.split(largest(flat, count_of(density, flat.size)), ends)
        return {n: part.reshape(scores[n].shape) for n, part in zip(scores, parts, strict=True)}

    def rounds(self, early: Weights, number: int = 0, masks: Weights | None = None) -> Rounds:
        """The rounds of a model.

        Parameters
        ----------
        early : Mapping[str, ndarray]
            Name of a layer -> the weights to which it is rewound, of any shape.
        number : int
            Of the first round: 0, or that of a ticket to go on with.
        masks : Mapping[str, ndarray of bool], optional
            Those of the ticket to go on with.

        Raises
        ------
        PruningError
            There is no layer, or a weight is NaN or infinite.
        OptionError
            There is no round of this number.
        """
        if not early:
            raise PruningError("there is no layer to look for a lottery ticket in")
        for name, array in early.items():
            check_finite(name, array)
        if not 0 <= number < len(self.densities):
            raise OptionError(f"number={number!r}; rounds are 0 to {len(self.densities) - 1}")
        return Rounds(self, early, number, masks)


@dataclass(frozen=True)
class Ticket:
    """What to train in one round.

    Attributes
    ----------
    number : int
        Of the round; 0 has all weights.
    density : float
        Share of the weights that are left.
    masks : dict of str to ndarray of bool
        What is left of each layer.
    weights : dict of str to ndarray
        To start from: the early ones, with zeros for those that are gone.
    """

    number: int
    density: float
    masks: Masks
    weights: dict[str, np.ndarray]


class Rounds:
    """An iterator of tickets; each but the last has to be finished before the next.

    `LotteryTicket.rounds` makes it.
    """

    def __init__(
        self, options: LotteryTicket, early: Weights, number: int, masks: Weights | None
    ) -> None:
        self._options = options
        self._early = {name: np.array(array) for name, array in early.items()}
        given = (
            masks if masks is not None else {n: np.ones(w.shape, bool) for n, w in early.items()}
        )
        self._check(given)
        self._masks: Masks = dict(given)
        self._number = number
        self._trained: Weights | None = None
        self._tickets = self._all()

    def __iter__(self) -> Iterator[Ticket]:
        return self._tickets

    def finish(self, trained: Weights) -> None:
        """Hand back the weights that came out of the last ticket's training.

        Raises
        ------
        PruningError
            A layer is missing, unknown or of another shape, or a weight is NaN or infinite.
        """
        self._check(trained)
        for name, array in trained.items():
            check_finite(name, array)
        self._trained = trained

    def _all(self) -> Iterator[Ticket]:
        shares = self._options.densities
        for number in range(self._number, len(shares)):
            if number > self._number:
                if self._trained is None:
                    raise PruningError(f"round {number - 1} isn't finished: call finish(weights)")
                self._masks = self._options.next_masks(self._trained, self._masks, shares[number])
                self._trained = None
            weights = {name: array * self._masks[name] for name, array in self._early.items()}
            yield Ticket(number, shares[number], self._masks, weights)

    def _check(self, given: Weights) -> None:
        for name in {**self._early, **given}:
            seen = given[name].shape if name in given else "missing"
            wanted = self._early[name].shape if name in self._early else "unknown"
            if seen != wanted:
                raise PruningError(f"layer {name}: given {seen}; the early weights are {wanted}")
