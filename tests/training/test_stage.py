"""Learning rates over the epochs of a stage."""

from __future__ import annotations

import math

import pytest

from tvm_ext.training import ADMM
from tvm_ext.training.admm import AdmmStage


@pytest.mark.parametrize(
    ("decay", "wanted"),
    [("constant", [2.0] * 4), ("cosine", [2.0, 1 + math.sqrt(0.5), 1.0, 1 - math.sqrt(0.5)])],
)
def test_decay(decay: str, wanted: list[float]) -> None:
    stage = AdmmStage(0, ADMM(epochs=4, learning_rate=2.0, decay=decay), None)  # type: ignore[arg-type]
    assert [stage.learning_rate(epoch) for epoch in range(4)] == pytest.approx(wanted)


def test_a_stage_without_epochs_has_a_learning_rate() -> None:
    stage = AdmmStage(0, ADMM(epochs=0, learning_rate=2.0, decay="cosine"), None)  # type: ignore[arg-type]
    assert stage.learning_rate(0) == 2
