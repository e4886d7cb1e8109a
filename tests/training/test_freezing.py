"""Modules that change little are frozen; changes set by hand."""

from __future__ import annotations

from tests.training.networks import nn, torch
from tvm_ext.training import Freezing
from tvm_ext.training.freezing import Freezer


def chain() -> nn.Sequential:
    """Three layers whose parameters have norms 2, 4 and 0."""
    model = nn.Sequential(*(nn.Linear(2, 1, bias=False) for _ in range(3)))
    for layer, size in zip(model, (2.0, 4.0, 0.0), strict=True):
        layer.weight.data = torch.tensor([[size, 0.0]])
    return model


def move(model: nn.Sequential, *changes: float) -> None:
    for layer, change in zip(model, changes, strict=True):
        layer.weight.data[0, 1] += change


def test_change_is_measured_by_the_size_and_against_the_largest() -> None:
    model = chain()
    freezer = Freezer(model, Freezing(threshold=0.5))
    freezer.note()
    # Relative changes 0.5, 0.2 and, of nothing, 0.3.
    move(model, 1.0, 0.8, 0.3)
    freezer.update(0)
    assert freezer.frozen == ("1",)
    assert [layer.weight.requires_grad for layer in model] == [True, False, True]


def test_what_is_frozen_no_longer_counts_and_one_module_always_stays() -> None:
    model = chain()
    freezer = Freezer(model, Freezing(threshold=0.9))
    for _ in range(5):
        freezer.note()
        move(model, 0.2, 0.1, 0.0)
        freezer.update(0)
    assert freezer.frozen == ("1", "2")


def test_all_modules_are_trained_at_first() -> None:
    model = chain()
    freezer = Freezer(model, Freezing(threshold=0.9, after=3))
    seen = []
    for epoch in range(4):
        freezer.note()
        move(model, 0.2, 0.1, 0.1)
        freezer.update(epoch)
        seen.append(len(freezer.frozen))
    assert seen == [0, 0, 2, 2]


def test_frozen_gradients_are_gone_and_thawing_trains_again() -> None:
    model = chain()
    freezer = Freezer(model, Freezing())
    model[1].weight.grad = torch.ones(1, 2)
    freezer.freeze(("1",))
    assert model[1].weight.grad is None
    freezer.thaw()
    assert model[1].weight.requires_grad
    assert freezer.frozen == ()


def test_what_the_user_has_frozen_stays_frozen() -> None:
    model = chain()
    model[0].weight.requires_grad_(False)
    freezer = Freezer(model, Freezing(threshold=0.9))
    freezer.note()
    move(model, 5.0, 1.0, 0.0)
    freezer.update(0)
    assert freezer.frozen == ("2",)
    freezer.thaw()
    assert [layer.weight.requires_grad for layer in model] == [False, True, True]
