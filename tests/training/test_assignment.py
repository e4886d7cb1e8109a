"""Which scheme prunes which layer; masks against the schemes' own on the same arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.training.networks import convnet, nn, normal, torch
from tvm_ext.errors import OptionError, PruningError
from tvm_ext.passes.pruning import BlockPrune, MagnitudePrune, PatternPrune
from tvm_ext.training.assignment import Assignment, default_weights, named_weights
from tvm_ext.training.weights import prunable_weights

HALF = MagnitudePrune(0.5)


def names(model: Any, schemes: Any, density: float | None = None) -> list[str]:
    return [w.name for w in Assignment(prunable_weights(model), schemes, density).weights]


def test_the_first_convolution_and_a_dense_layer_at_the_end_stay_dense() -> None:
    assert names(convnet(), HALF) == ["3", "5"]
    # Nothing dense stands at the end here.
    assert names(nn.Sequential(nn.Linear(4, 4), nn.Unflatten(1, (4, 1)), nn.Conv1d(4, 4, 1)), HALF)
    assert [w.name for w in default_weights(prunable_weights(nn.LSTM(2, 2)))] == [
        "weight_ih_l0", "weight_hh_l0",
    ]  # fmt: skip


def test_the_first_pattern_that_matches_counts_and_none_is_dense() -> None:
    schemes = {"0": None, "10": BlockPrune(0.5, (2, 2)), "*": HALF}
    assignment = Assignment(prunable_weights(convnet()), schemes)
    assert assignment.schemes == {"3": HALF, "5": HALF, "10": BlockPrune(0.5, (2, 2))}
    assert names(convnet(), {"5": HALF}) == ["5"]


def test_layers_that_a_scheme_refuses_are_skipped_with_the_reason() -> None:
    assignment = Assignment(prunable_weights(convnet()), {"*": PatternPrune()})
    assert [w.name for w in assignment.weights] == ["0", "3", "5"]
    assert list(assignment.skipped) == ["10"]
    assert "patterns are for 3x3" in assignment.skipped["10"]


def test_masks_are_those_of_the_scheme_on_all_its_layers() -> None:
    model = convnet()
    scheme = MagnitudePrune(0.3, scope="global")
    masks = Assignment(prunable_weights(model), scheme).masks()
    wanted = scheme.masks({n: model[int(n)].weight.detach().numpy() for n in ("3", "5")})
    for name, mask in masks.items():
        np.testing.assert_array_equal(mask.numpy(), wanted[name])
    assert masks["3"].float().mean() != masks["5"].float().mean()


def test_masks_of_other_values() -> None:
    assignment = Assignment(prunable_weights(nn.Linear(4, 1)), {"weight": HALF})
    masks = assignment.masks({"weight": torch.tensor([[1.0, -4.0, 3.0, 2.0]])})
    assert masks["weight"].tolist() == [[False, True, True, False]]


def test_patterns_are_found_once_from_all_layers() -> None:
    model = convnet()
    scheme = PatternPrune(patterns=2)
    arrays = {n: model[int(n)].weight.detach().numpy().copy() for n in ("3", "5")}
    assignment = Assignment(prunable_weights(model), scheme)
    fitted = scheme.fitted(arrays)
    assert assignment.schemes == {"3": fitted, "5": fitted}
    assert fitted.pattern_set is not None
    with torch.no_grad():
        model[3].weight.copy_(normal(8, 4, 3, 3, seed=1))
    kernels = assignment.masks()["3"].reshape(-1, 9).numpy()
    allowed = {tuple(np.ravel(p)) for p in fitted.pattern_set}
    assert {tuple(k) for k in kernels} <= allowed


def test_a_density_of_its_own_holds_in_each_layer() -> None:
    scheme = MagnitudePrune(0.5, scope="global")
    masks = Assignment(prunable_weights(convnet()), scheme, 0.25).masks()
    assert [float(m.float().mean()) for m in masks.values()] == [0.25, 0.25]


def test_patterns_of_names() -> None:
    weights = prunable_weights(convnet())
    assert [w.name for w in named_weights(weights, "5")] == ["5"]
    assert [w.name for w in named_weights(weights, ["1*", "[03]"])] == ["0", "3", "10"]


@pytest.mark.parametrize(
    ("schemes", "density", "error", "message"),
    [
        ({"7": HALF}, None, PruningError, "'7' matches no layer that can be pruned: 0, 3, 5, 10"),
        ({"5": None}, None, PruningError, "no layer is left to prune"),
        ({"10": PatternPrune()}, None, PruningError, "no layer is left to prune; 10: .*1x1"),
        (HALF, 0.0, OptionError, r"density=0.0 has to be a number in \(0, 1\]"),
        (PatternPrune(), 0.9, OptionError, "density=0.9 .*patterns with entries=4"),
        (0.5, None, OptionError, "scheme=0.5 has to be"),
        ({"5": "half"}, None, OptionError, "scheme='half' has to be"),
    ],
)
def test_refusals(schemes: Any, density: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Assignment(prunable_weights(convnet()), schemes, density)
