"""Fine-tuning with an early stop and with frozen modules, inside whole runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.networks import convnet, cross_entropy, images, torch
from tvm_ext.passes.pruning import MagnitudePrune
from tvm_ext.training import ADMM, EarlyStop, FineTune, Freezing, admm_prune


def prune(fine_tune: FineTune, **options: Any) -> Any:
    return admm_prune(
        convnet(), images(), cross_entropy, MagnitudePrune(0.5), admm=ADMM(0),
        fine_tune=fine_tune, progress=False, **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stop", "losses", "epochs", "best"),
    [
        (EarlyStop(2), [1.0, 5.0, 4.0, 6.0, 7.0, 1.0], 4, 1),
        (EarlyStop(None, tolerance=0.5), [1.0, 5.0, 1.5, 0.0], 2, 1),
        (EarlyStop(None), [1.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.0], 6, 0),
    ],
)
def test_stops_and_goes_back_to_the_best_epoch(
    stop: EarlyStop, losses: list[float], epochs: int, best: int
) -> None:
    seen: list[Any] = []

    def validate(model: Any) -> float:
        seen.append(model[3].weight.detach().clone())
        return losses[len(seen) - 1]

    result = prune(FineTune(6, early_stop=stop), validate=validate)
    assert len(result.history) == epochs
    assert [e.metrics.stop for e in result.history] == [False] * (epochs - 1) + [
        stop.patience is not None or stop.tolerance is not None
    ]
    # The first one seen is of the dense model.
    assert torch.equal(result.model[3].weight, seen[1 + best])
    assert not torch.equal(seen[-1], seen[1])


def test_frozen_modules_keep_their_weights() -> None:
    seen: list[Any] = []

    def validate(model: Any) -> float:
        seen.append({n: p.detach().clone() for n, p in model.named_parameters()})
        return 0.0

    result = prune(FineTune(4, freezing=Freezing(0.95)), validate=validate)
    frozen = result.history[0].metrics.frozen
    assert frozen
    assert len(frozen) < 5
    # Index 1 is after the first epoch, which trains everything.
    for name, value in seen[1].items():
        module = name.rpartition(".")[0]
        assert torch.equal(seen[2][name], value) is (module in frozen), name
    assert all(p.requires_grad for p in result.model.parameters())
