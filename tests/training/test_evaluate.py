"""Loss and accuracy of data sets, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.networks import cross_entropy, nn, torch
from tvm_ext.errors import TrainingError
from tvm_ext.training import accuracy, mean_loss


class Logits(nn.Dropout):
    """Returns its input; dropout would show training mode."""

    def __init__(self) -> None:
        super().__init__(0.99)
        self.weight = nn.Parameter(torch.ones(()))


ROWS = torch.tensor([[3.0, 0.0], [0.0, 2.0], [5.0, 1.0], [0.0, 0.1], [1.0, 0.0]])
CLASSES = torch.tensor([0, 0, 0, 1, 1])
BATCHES = [(ROWS[:2], CLASSES[:2]), (ROWS[2:], CLASSES[2:])]


def test_each_sample_counts_the_same() -> None:
    assert accuracy(Logits(), BATCHES) == 3 / 5
    wanted = cross_entropy(ROWS, CLASSES).item()
    assert mean_loss(Logits(), BATCHES, cross_entropy) == pytest.approx(wanted)


@pytest.mark.parametrize("training", [False, True])
def test_the_mode_stays(training: bool) -> None:
    model = Logits().train(training)
    accuracy(model, BATCHES)
    assert model.training is training


def test_positions_count_each() -> None:
    logits = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]])
    assert accuracy(Logits(), [(logits, torch.tensor([[0, 1, 1]]))]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("call", [accuracy, lambda m, b: mean_loss(m, b, cross_entropy)])
def test_no_data(call: Any) -> None:
    with pytest.raises(TrainingError, match="the data loader is empty"):
        call(Logits(), [])
