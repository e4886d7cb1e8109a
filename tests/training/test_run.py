"""What stops a run, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.networks import convnet, cross_entropy, images, same, torch
from tvm_ext.errors import OptionError, TrainingError
from tvm_ext.passes.pruning import MagnitudePrune
from tvm_ext.training import ADMM, EarlyStop, FineTune, admm_prune

HALF = MagnitudePrune(0.5)


def prune(model: Any = None, loader: Any = None, loss: Any = cross_entropy, **options: Any) -> Any:
    options = {"admm": ADMM(1), "fine_tune": FineTune(1), "progress": False, **options}
    return admm_prune(model or convnet(), loader or images(), loss, HALF, **options)


def test_a_loss_that_isnt_finite_says_where() -> None:
    calls = 0

    def loss(outputs: Any, targets: Any) -> Any:
        nonlocal calls
        calls += 1
        return cross_entropy(outputs, targets) * (float("inf") if calls == 5 else 1.0)

    with pytest.raises(
        TrainingError, match="fine_tune of round 0, epoch 0, batch 1: the loss is inf; a lower"
    ):
        prune(loss=loss)


@pytest.mark.parametrize(
    ("loader", "message"),
    [([], "the data loader is empty"), ([torch.ones(2, 1, 6, 6)], "has to be a pair")],
)
def test_loaders_that_give_something_else(loader: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        admm_prune(convnet(), loader, cross_entropy, HALF, progress=False)


def test_a_validation_that_is_no_number() -> None:
    with pytest.raises(TrainingError, match="validate returned NaN"):
        prune(validate=lambda _: float("nan"))


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True])
def test_seeds_that_pytorch_doesnt_take(seed: Any) -> None:
    with pytest.raises(OptionError, match=r"seed is .*; allowed are whole numbers in"):
        prune(seed=seed)


def test_an_early_stop_without_a_validation() -> None:
    with pytest.raises(OptionError, match=r"fine_tune.early_stop needs a validation loss"):
        prune(fine_tune=FineTune(1, early_stop=EarlyStop()))


def test_the_model_and_the_random_numbers_outside_stay() -> None:
    model = convnet()
    model.eval()
    model[0].weight.requires_grad_(False)
    torch.manual_seed(5)
    result = prune(model)
    after = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), after)
    assert same(model, convnet())
    assert not model.training
    assert model[3].weight.grad is None
    # What its owner doesn't train isn't trained here.
    assert torch.equal(result.model[0].weight, model[0].weight)
    assert not torch.equal(result.model[3].weight, model[3].weight)


def test_validation_sees_the_model_in_evaluation_mode_without_gradients() -> None:
    seen: list[tuple[bool, bool]] = []

    def validate(model: Any) -> float:
        seen.append((model.training, torch.is_grad_enabled()))
        return 0.5

    result = prune(validate=validate)
    assert seen == [(False, False)] * 3
    assert result.dense_validation == 0.5
    assert [epoch.validation for epoch in result.history] == [0.5, 0.5]
