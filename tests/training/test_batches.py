"""Pairs of inputs and targets in every form, and calls of models with them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.networks import nn, torch
from tvm_ext.errors import TrainingError
from tvm_ext.training.batches import call, device_of, split


class Sum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, a: Any, b: Any = 0.0) -> Any:
        return a + 10 * b


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        (torch.tensor(2.0), 2.0),
        ((torch.tensor(2.0), torch.tensor(3.0)), 32.0),
        ([torch.tensor(2.0)], 2.0),
        ({"b": torch.tensor(2.0), "a": torch.tensor(3.0)}, 23.0),
        ((torch.tensor(2.0), 4), 42.0),
    ],
)
def test_forms_of_inputs(inputs: Any, wanted: float) -> None:
    model = Sum()
    moved, target = split((inputs, torch.tensor(1)), device_of(model))
    assert target.item() == 1
    assert call(model, moved).item() == wanted


def test_tensors_are_moved() -> None:
    pair = split(({"a": [torch.ones(2)]}, (torch.ones(3), "label")), torch.device("meta"))
    assert pair[0]["a"][0].device.type == "meta"
    assert pair[1][0].device.type == "meta"
    assert pair[1][1] == "label"


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (torch.ones(2), "the data loader gave a Tensor; a batch has to be a pair"),
        ((torch.ones(2),), "gave a tuple of 1"),
        ({"x": 1, "y": 2}, "gave a dict; a batch"),
    ],
)
def test_batches_that_are_no_pairs(batch: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        split(batch, torch.device("cpu"))
