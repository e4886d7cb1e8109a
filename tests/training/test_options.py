"""Values that an option doesn't know are refused where they are given."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tvm_ext.errors import OptionError
from tvm_ext.training import ADMM, AttentionTransfer, Distillation, EarlyStop, FineTune, Freezing


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (ADMM, {"epochs": -1}, "ADMM.epochs is -1; allowed are whole numbers from 0 on"),
        (ADMM, {"epochs": 1.5}, "ADMM.epochs is 1.5"),
        (ADMM, {"epochs": True}, "ADMM.epochs is True"),
        (ADMM, {"rho": (0.0, 1.0)}, "ADMM.rho is 0.0; allowed are positive finite numbers"),
        (ADMM, {"rho": (1.0, float("inf"))}, "ADMM.rho is inf"),
        (ADMM, {"rho": (1.0,)}, r"ADMM.rho is \(1.0,\); allowed is a pair"),
        (ADMM, {"learning_rate": 0.0}, "ADMM.learning_rate is 0.0"),
        (FineTune, {"learning_rate": float("nan")}, "FineTune.learning_rate is nan"),
        (FineTune, {"decay": "step"}, "FineTune.decay is 'step'; allowed are constant, cosine"),
        (Freezing, {"threshold": 1.0}, "Freezing.threshold is 1.0; allowed are shares"),
        (Freezing, {"after": 0}, "Freezing.after is 0; allowed are whole numbers from 1 on"),
        (EarlyStop, {"patience": 0}, "EarlyStop.patience is 0"),
        (EarlyStop, {"tolerance": -0.1}, "EarlyStop.tolerance is -0.1"),
        (Distillation, {"temperature": 0.0}, "Distillation.temperature is 0.0"),
        (Distillation, {"alpha": 1.1}, "Distillation.alpha is 1.1; allowed are shares"),
        (AttentionTransfer, {"layers": ()}, r"AttentionTransfer.layers is \(\)"),
        (AttentionTransfer, {"layers": "a"}, "AttentionTransfer.layers is 'a'"),
        (AttentionTransfer, {"layers": ("a",), "beta": -1.0}, "AttentionTransfer.beta is -1.0"),
        (AttentionTransfer, {"layers": ("a",), "power": 0.5}, "AttentionTransfer.power is 0.5"),
    ],
)
def test_refusals_name_option_value_and_what_is_allowed(
    make: Any, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        make(**values)


def test_options_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ADMM().epochs = 3  # type: ignore[misc]
