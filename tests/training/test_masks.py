"""Zeros stay zero, whatever gradients and optimizers say."""

from __future__ import annotations

import math

from tests.training.networks import nn, torch
from tvm_ext.training.masks import Masks
from tvm_ext.training.weights import prunable_weights


def test_gradients_and_weights_that_are_not_kept_become_zero() -> None:
    layer = nn.Linear(3, 1)
    layer.weight.data = torch.tensor([[1.0, -2.0, 3.0]])
    masks = Masks(prunable_weights(layer))
    kept = torch.tensor([[True, False, True]])
    masks.set({"weight": kept})
    assert layer.weight.tolist() == [[1, 0, 3]]
    # Not -0, and not NaN, which a product would give.
    assert math.copysign(1, layer.weight[0, 1].item()) == 1
    layer.weight.grad = torch.tensor([[4.0, float("nan"), 6.0]])
    masks.zero_gradients()
    assert layer.weight.grad.tolist() == [[4, 0, 6]]
    layer.weight.data[0, 1] = float("nan")
    masks.zero_weights()
    assert layer.weight.tolist() == [[1, 0, 3]]
    assert masks.get()["weight"] is kept
    assert masks.arrays()["weight"].tolist() == [[True, False, True]]


def test_without_masks_everything_is_kept() -> None:
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    masks = Masks(prunable_weights(layer))
    masks.zero_gradients()
    masks.zero_weights()
    assert torch.equal(layer.weight, before)


def test_new_masks_replace_old_ones() -> None:
    layer = nn.Linear(2, 1)
    layer.weight.data = torch.ones(1, 2)
    masks = Masks(prunable_weights(layer))
    masks.set({"weight": torch.tensor([[True, False]])})
    masks.set({"weight": torch.tensor([[True, True]])})
    layer.weight.data[0, 1] = 5
    masks.zero_weights()
    assert layer.weight.tolist() == [[1, 5]]
