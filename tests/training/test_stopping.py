"""When fine-tuning stops, and which weights it leaves."""

from __future__ import annotations

import pytest

from tests.training.networks import nn, torch
from tvm_ext.training import EarlyStop
from tvm_ext.training.stopping import Stopper


def follow(options: EarlyStop, losses: list[float], dense: float = 1.0) -> tuple[int, float]:
    """The epochs until it stops, and the epoch whose weights are left."""
    model = nn.Linear(1, 1)
    stopper = Stopper(model, options, dense)
    for epoch, loss in enumerate(losses):
        model.weight.data.fill_(epoch)
        if stopper.update(loss):
            break
    stopper.restore()
    return epoch, model.weight.item()


@pytest.mark.parametrize(
    ("options", "losses", "wanted"),
    [
        (EarlyStop(2), [5, 4, 4, 4.5, 3], (3, 1)),
        (EarlyStop(2), [5, 6, 4, 6, 6, 1], (4, 2)),
        (EarlyStop(None), [5, 6, 7, 8], (3, 0)),
        (EarlyStop(9, tolerance=0.5), [5, 1.6, 1.5, 0], (2, 2)),
        (EarlyStop(None, tolerance=0.0), [5, 2], (1, 1)),
    ],
)
def test_stops(options: EarlyStop, losses: list[float], wanted: tuple[int, float]) -> None:
    assert follow(options, losses) == wanted


def test_going_on_from_a_state() -> None:
    model = nn.Linear(1, 1)
    first = Stopper(model, EarlyStop(2), 0.0)
    model.weight.data.fill_(7)
    first.update(3.0)
    first.update(4.0)
    second = Stopper(model, EarlyStop(2), 0.0)
    second.load_state_dict(first.state_dict())
    model.weight.data.fill_(8)
    assert second.update(5.0)
    second.restore()
    assert model.weight.item() == 7


def test_without_an_epoch_nothing_is_restored() -> None:
    model = nn.Linear(1, 1)
    before = model.weight.detach().clone()
    Stopper(model, EarlyStop(), 0.0).restore()
    assert torch.equal(model.weight, before)
