"""Rounds of pruning and rewinding, worked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from relax_models import array

from tvm_ext.errors import OptionError, PruningError
from tvm_ext.passes.pruning import LotteryTicket

EARLY = {"a": np.array([[1.0, 2.0, 3.0, 4.0]]), "b": np.array([[5.0, 6.0, 7.0, 8.0, 9.0, 10.0]])}
TRAINED = {
    "a": np.array([[0.1, -8.0, 0.2, 9.0]]),
    "b": np.array([[0.3, 0.0, -5.0, 6.0, 7.0, 8.0]]),
}


def test_a_fifth_of_what_remains_goes_each_round() -> None:
    shares = LotteryTicket(density=0.5).densities
    assert shares == pytest.approx([1.0, 0.8, 0.64, 0.512, 0.5])
    assert LotteryTicket(density=1).densities == (1.0,)
    assert LotteryTicket(density=0.3, rate=0.5).densities == (1.0, 0.5, 0.3)


def test_the_smallest_trained_weights_go_and_the_others_are_rewound() -> None:
    rounds = LotteryTicket(density=0.6).rounds(EARLY)
    seen = []
    for ticket in rounds:
        seen.append(ticket)
        rounds.finish({name: TRAINED[name] * ticket.masks[name] for name in EARLY})
    assert [t.number for t in seen] == [0, 1, 2, 3]
    assert [t.density for t in seen] == pytest.approx([1.0, 0.8, 0.64, 0.6])
    np.testing.assert_array_equal(seen[0].weights["b"], EARLY["b"])
    # 8 of 10 remain: 0.0 and 0.1 go; then 6: 0.2 and 0.3.
    np.testing.assert_array_equal(seen[1].weights["a"], [[0, 2, 3, 4]])
    np.testing.assert_array_equal(seen[1].weights["b"], [[5, 0, 7, 8, 9, 10]])
    np.testing.assert_array_equal(seen[2].masks["a"], [[False, True, False, True]])
    np.testing.assert_array_equal(seen[2].weights["b"], [[0, 0, 7, 8, 9, 10]])
    np.testing.assert_array_equal(seen[3].weights["b"], seen[2].weights["b"])


def test_each_layer_drops_its_share_if_asked() -> None:
    ticket = LotteryTicket(density=0.5, rate=0.5, scope="layer")
    rounds = ticket.rounds(EARLY)
    next(iter(rounds))
    rounds.finish(TRAINED)
    masks = next(iter(rounds)).masks
    np.testing.assert_array_equal(masks["a"], [[False, True, False, True]])
    np.testing.assert_array_equal(masks["b"], [[False, False, False, True, True, True]])


def test_what_is_gone_stays_gone() -> None:
    """Even if training brings it back, or makes what remains zero."""
    rounds = LotteryTicket(density=0.2).rounds({"w": array(0, 40, 30)})
    before = np.ones((40, 30), bool)
    for ticket in rounds:
        mask = ticket.masks["w"]
        assert not (mask & ~before).any()
        assert mask.sum() == int(1200 * ticket.density + 0.5)
        before = mask
        trained = array(ticket.number + 1, 40, 30)
        trained[mask & (np.arange(30) % 2 == 0)] = 0
        rounds.finish({"w": trained})


def test_rounds_go_on_from_a_ticket() -> None:
    ticket = LotteryTicket(density=0.4)
    whole, masks = ticket.rounds(EARLY), []
    for found in whole:
        masks.append(found.masks)
        whole.finish(TRAINED)
    rest, later = ticket.rounds(EARLY, number=2, masks=masks[2]), []
    for found in rest:
        later.append(found.masks)
        rest.finish(TRAINED)
    assert len(later) == len(masks) - 2
    for a, b in zip(later, masks[2:], strict=True):
        np.testing.assert_equal(a, b)


def test_an_unfinished_round_is_an_error() -> None:
    rounds = iter(LotteryTicket(density=0.5).rounds(EARLY))
    next(rounds)
    with pytest.raises(PruningError, match="round 0 isn't finished"):
        next(rounds)


@pytest.mark.parametrize(
    ("trained", "message"),
    [
        ({"a": TRAINED["a"]}, "layer b: given missing"),
        ({**TRAINED, "c": np.ones(3)}, r"layer c: given \(3,\); the early weights are unknown"),
        ({**TRAINED, "a": np.ones((4, 1))}, r"layer a: given \(4, 1\); .* are \(1, 4\)"),
        ({**TRAINED, "a": np.full((1, 4), np.nan)}, r"layer a: the weight at \(0, 0\) is nan"),
    ],
)
def test_weights_that_do_not_fit_are_refused(trained: dict[str, Any], message: str) -> None:
    rounds = LotteryTicket(density=0.5).rounds(EARLY)
    next(iter(rounds))
    with pytest.raises(PruningError, match=message):
        rounds.finish(trained)


def test_there_has_to_be_a_layer_of_numbers_and_a_round() -> None:
    with pytest.raises(PruningError, match="no layer"):
        LotteryTicket(density=0.5).rounds({})
    with pytest.raises(PruningError, match=r"layer a: the weight at \(0,\) is inf"):
        LotteryTicket(density=0.5).rounds({"a": np.array([np.inf])})
    with pytest.raises(OptionError, match="number=9; rounds are 0 to 4"):
        LotteryTicket(density=0.5).rounds(EARLY, number=9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": 0}, "density=0 has to be"),
        ({"density": 0.5, "rate": 0}, "rate=0 has to be"),
        ({"density": 0.5, "rate": 1.0}, "rate=1.0 drops everything"),
        ({"density": 0.5, "scope": "all"}, "scope='all' is not one of layer, global"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        LotteryTicket(**options)
