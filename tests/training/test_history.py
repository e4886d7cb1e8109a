"""Records of epochs survive a checkpoint."""

from __future__ import annotations

import pytest

from tests.training.networks import torch
from tvm_ext.training import Epoch, Metrics


@pytest.mark.parametrize(
    "metrics",
    [Metrics(rho=0.1, primal_residual=0.2, dual_residual=0.3), Metrics(frozen=("a", "b"))],
)
def test_round_trip(metrics: Metrics, tmp_path) -> None:
    epoch = Epoch("admm", 1, 2, 1e-3, 0.5, 0.25, None, metrics)
    torch.save(epoch.to_dict(), tmp_path / "record")
    assert Epoch.from_dict(torch.load(tmp_path / "record", weights_only=True)) == epoch
