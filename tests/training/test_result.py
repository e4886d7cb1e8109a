"""A trained model through `tvm_ext.build` and the passes; torch's eager result is the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm_ext
from tests.models import RTOL
from tests.training.networks import convnet, cross_entropy, images, normal, torch
from tvm_ext.passes.pruning import BlockPrune, MagnitudePrune, PatternPrune
from tvm_ext.passes.pruning.prunable import prunables
from tvm_ext.training import ADMM, FineTune, TrainingResult, admm_prune

X = normal(1, 1, 6, 6)
SCHEMES = [
    PatternPrune(patterns=4, connectivity=0.5),
    BlockPrune(0.25, (4, 6)),
    MagnitudePrune(0.2, scope="global"),
]


def trained(scheme: Any, epochs: int) -> TrainingResult:
    return admm_prune(
        convnet(), images(), cross_entropy, scheme, admm=ADMM(epochs),
        fine_tune=FineTune(epochs), progress=False,
    )  # fmt: skip


def zeros(mod: Any) -> list[np.ndarray]:
    """Where each layer's weights are zero, in the order of execution."""
    return [layer.weights == 0 for layer in prunables(mod)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_training_and_the_pass_choose_the_same_zeros(scheme: Any) -> None:
    # Untrained, both start from the same dense weights, and find patterns and layers themselves.
    result = trained(scheme, epochs=0)
    exported = zeros(tvm_ext.load_model(result.export(X)))
    dense = torch.export.export(convnet().eval(), (X,))
    for got, wanted in zip(exported, zeros(tvm_ext.prune(dense, scheme).module), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert sum(z.any() for z in exported) == 2


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_pass_finds_nothing_left_to_prune_after_training(scheme: Any) -> None:
    result = trained(scheme, epochs=2)
    mod = tvm_ext.load_model(result.export(X))
    fitted = next(iter(result.schemes.values()))
    again = zeros(tvm_ext.prune(mod, fitted).module)
    for got, wanted in zip(zeros(mod), again, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_the_compiled_model_computes_what_torch_computes() -> None:
    result = trained(SCHEMES[0], epochs=1)
    before = dict(result.model.named_modules())
    exe = tvm_ext.build(result.export(X))
    assert dict(result.model.named_modules()) == before
    with torch.no_grad():
        wanted = result.model(X).numpy()
    got = exe([X.numpy()])
    assert np.abs(got - wanted).max() <= RTOL * np.abs(wanted).max()
