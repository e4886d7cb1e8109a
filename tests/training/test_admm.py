"""ADMM on quadratic losses, whose iterates and optimum are known, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.training.networks import nn, torch
from tvm_ext.passes.pruning import BlockPrune, MagnitudePrune
from tvm_ext.passes.pruning.scheme import Scheme
from tvm_ext.training import ADMM, FineTune, admm_prune

TARGET = np.random.default_rng(0).standard_normal((6, 8))


def start(seed: int) -> Any:
    """A matrix in float64, as the weights of a dense layer."""
    layer = nn.Linear(8, 6, bias=False, dtype=torch.float64)
    values = np.random.default_rng(seed).standard_normal((6, 8))
    layer.weight.data = torch.tensor(values)
    return layer


def run(scheme: Scheme, admm: ADMM, fine_tune: int = 0, steps: int = 1) -> Any:
    """Minimise |W - TARGET|^2 / 2 with gradient descent, `steps` an epoch."""
    identity = torch.eye(8, dtype=torch.float64)
    batches = [(identity, torch.tensor(TARGET.T))] * steps
    return admm_prune(
        start(1), batches, lambda y, t: (y - t).square().sum() / 2, {"weight": scheme},
        admm=admm, fine_tune=FineTune(fine_tune, learning_rate=1.0, decay="constant"),
        optimizer=torch.optim.SGD, progress=False,
    )  # fmt: skip


def iterate(scheme: Scheme, rhos: np.ndarray, rate: float, steps: int) -> tuple[np.ndarray, ...]:
    """The same by hand: W before pruning, and the relative residuals of each epoch."""
    w = start(1).weight.detach().numpy().copy()
    z, u = w * scheme.mask(w), np.zeros_like(w)
    primal, dual = [], []
    for i, rho in enumerate(rhos):
        for _ in range(steps):
            w = w - rate * (w - TARGET + rho * (w - z + u))
        before, z = z, (w + u) * scheme.mask(w + u)
        u = u + w - z
        if i + 1 < len(rhos):
            u = u * rho / rhos[i + 1]
        size = np.linalg.norm(w)
        primal.append(np.linalg.norm(w - z) / size)
        dual.append(np.linalg.norm(z - before) / size)
    return w, np.array(primal), np.array(dual)


@pytest.mark.parametrize("scheme", [MagnitudePrune(0.25), BlockPrune(0.5, (3, 4))])
@pytest.mark.parametrize(("rho", "steps"), [((1.5, 1.5), 1), ((0.01, 2.0), 3)])
def test_iterates_are_those_of_the_definition(
    scheme: Scheme, rho: tuple[float, float], steps: int
) -> None:
    rate = 0.2
    result = run(scheme, ADMM(12, rho=rho, learning_rate=rate), steps=steps)
    rhos = np.geomspace(*rho, 12)
    w, primal, dual = iterate(scheme, rhos, rate, steps)
    got = result.model.weight.detach().numpy()
    np.testing.assert_allclose(got, w * scheme.mask(w), rtol=0, atol=1e-12)
    history = [epoch.metrics for epoch in result.history]
    np.testing.assert_allclose([m.rho for m in history], rhos, rtol=1e-12)
    np.testing.assert_allclose([m.primal_residual for m in history], primal, rtol=0, atol=1e-12)
    np.testing.assert_allclose([m.dual_residual for m in history], dual, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scheme", [MagnitudePrune(0.25), BlockPrune(0.25, (3, 8))])
def test_converges_to_the_projection_of_the_optimum(scheme: Scheme) -> None:
    # Among matrices that the scheme allows, the nearest to the target is its projection. A step of
    # 1 / (1 + rho) solves the W-step exactly. U ends as target / rho where weights are removed, and
    # W as the target where they aren't: with rho = 1, only the projection's own choice is stable.
    result = run(scheme, ADMM(60, rho=(1.0, 1.0), learning_rate=0.5))
    wanted = TARGET * scheme.mask(TARGET)
    got = result.model.weight.detach().numpy()
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(got != 0, wanted != 0)
    assert result.history[-1].metrics.primal_residual < 1e-6
    assert result.history[-1].metrics.dual_residual < 1e-6
    # The pruning of the start alone would have kept others.
    before = start(1).weight.detach().numpy()
    assert (scheme.mask(before) != scheme.mask(TARGET)).any()


def test_the_penalty_is_half_rho_times_the_squared_distance() -> None:
    scheme = MagnitudePrune(0.25)
    result = run(scheme, ADMM(1, rho=(0.3, 0.3), learning_rate=1e-9))
    w = start(1).weight.detach().numpy()
    wanted = 0.5 * 0.3 * ((w - w * scheme.mask(w)) ** 2).sum()
    assert result.history[0].penalty == pytest.approx(wanted, rel=1e-12)
    assert result.history[0].loss == pytest.approx(((w - TARGET) ** 2).sum() / 2, rel=1e-12)


def test_fine_tuning_finds_the_best_values_of_the_weights_that_are_kept() -> None:
    scheme = MagnitudePrune(0.25)
    result = run(scheme, ADMM(0), fine_tune=1)
    mask = scheme.mask(start(1).weight.detach().numpy())
    np.testing.assert_allclose(
        result.model.weight.detach().numpy(), TARGET * mask, rtol=0, atol=1e-12
    )
