"""From a scheme and its layers to a pruned module, against NumPy's choice of the largest."""

from __future__ import annotations

import numpy as np
import pytest
import tvm

from tests.passes.pruning import networks
from tvm_ext.errors import OptionError, PruningError
from tvm_ext.passes.pruning import MagnitudePrune, PatternPrune, prunables, replace_weights
from tvm_ext.passes.pruning.apply import check_scheme, choose_layers, prune_layers

MODULE = networks.convolutions()
LAYERS = prunables(MODULE)
NAMES = [layer.name for layer in LAYERS]
ALL = dict.fromkeys(NAMES, "")


def largest(weights: np.ndarray, count: int) -> np.ndarray:
    """The weights without all but the largest."""
    limit = np.sort(np.abs(weights), axis=None)[-count]
    return np.where(np.abs(weights) >= limit, weights, 0)


def weights_of(mod: tvm.IRModule) -> dict[str, np.ndarray]:
    return {layer.name: layer.weights for layer in prunables(mod)}


@pytest.mark.parametrize("scheme", [None, "block", MagnitudePrune, {"density": 0.5}])
def test_what_is_no_scheme_is_refused(scheme: object) -> None:
    check_scheme(MagnitudePrune(0.5))
    with pytest.raises(OptionError, match="has to be a PatternPrune, BlockPrune or other Scheme"):
        check_scheme(scheme)


def test_reasons_of_the_choice_and_of_the_scheme() -> None:
    assert choose_layers(LAYERS, MagnitudePrune(0.5)) == {
        **ALL, NAMES[0]: "the first convolution", NAMES[-1]: "the last dense layer"
    }  # fmt: skip
    notes = choose_layers(LAYERS, PatternPrune(), exclude=NAMES[1])
    assert notes[NAMES[0]] == notes[NAMES[2]] == ""
    assert notes[NAMES[1]] == f"excluded by {NAMES[1]!r}"
    assert all(notes[name].startswith("a 1x1 kernel") for name in NAMES[3:])


def test_a_refusal_is_an_error_for_a_layer_that_is_named() -> None:
    with pytest.raises(PruningError, match=f"layer {NAMES[3]}: a 1x1 kernel"):
        choose_layers(LAYERS, PatternPrune(), include=[NAMES[2], NAMES[3]])
    assert choose_layers(LAYERS, PatternPrune(), include="*")[NAMES[3]]


def test_only_weights_that_are_pruned_have_to_be_finite() -> None:
    broken = LAYERS[2].weights.copy()
    broken[0, 1, 2, 0] = -np.inf
    layers = prunables(replace_weights(MODULE, {NAMES[2]: broken}))
    with pytest.raises(PruningError, match=rf"layer {NAMES[2]}: .* at \(0, 1, 2, 0\) is -inf"):
        choose_layers(layers, MagnitudePrune(0.5))
    assert choose_layers(layers, MagnitudePrune(0.5), exclude=NAMES[2])[NAMES[2]]


def test_weights_are_the_largest_and_the_others_stay() -> None:
    notes = {**ALL, NAMES[1]: "left", NAMES[4]: "alone"}
    mod, report = prune_layers(MODULE, LAYERS, notes, MagnitudePrune(0.25), {})
    for layer, row in zip(LAYERS, report.layers, strict=True):
        chosen = not notes[layer.name]
        size = layer.weights.size
        wanted = largest(layer.weights, size // 4) if chosen else layer.weights
        found = weights_of(mod)[layer.name]
        np.testing.assert_array_equal(found, wanted)
        assert (row.name, row.note, row.density) == (
            layer.name, notes[layer.name], 0.25 if chosen else 1
        )  # fmt: skip
        energies = [np.square(w, dtype="float64").sum() for w in (wanted, layer.weights)]
        assert row.kept_energy == pytest.approx(energies[0] / energies[1])


def test_the_first_pattern_that_matches_a_layer_counts() -> None:
    shares = {NAMES[2]: 0.5, "lv*": 0.125, "*": 1.0}
    mod, _ = prune_layers(MODULE, LAYERS, ALL, MagnitudePrune(0.75), shares)
    found = weights_of(mod)
    for layer in LAYERS:
        share = next(s for p, s in shares.items() if p in (layer.name, "*") or
                     (p == "lv*" and layer.name.startswith("lv")))  # fmt: skip
        count = max(1, round(share * layer.weights.size))
        np.testing.assert_array_equal(found[layer.name], largest(layer.weights, count))


def test_layers_with_a_density_leave_the_competition() -> None:
    scheme = MagnitudePrune(0.1, scope="global")
    mod, _ = prune_layers(MODULE, LAYERS, ALL, scheme, {NAMES[0]: 1.0})
    found = weights_of(mod)
    np.testing.assert_array_equal(found[NAMES[0]], LAYERS[0].weights)
    rest = np.concatenate([layer.weights.reshape(-1) for layer in LAYERS[1:]])
    wanted = largest(rest, round(0.1 * rest.size))
    kept = np.concatenate([found[name].reshape(-1) for name in NAMES[1:]])
    np.testing.assert_array_equal(kept, wanted)


def test_the_module_that_was_given_is_unchanged() -> None:
    before = MODULE.script(show_meta=True)
    prune_layers(MODULE, LAYERS, ALL, MagnitudePrune(0.01), {})
    assert MODULE.script(show_meta=True) == before


def test_nothing_to_prune() -> None:
    notes = dict.fromkeys(NAMES, "too dear")
    with pytest.raises(PruningError, match=f"no layer is left to prune: {NAMES[0]}: too dear; "):
        prune_layers(MODULE, LAYERS, notes, MagnitudePrune(0.5), {})
    with pytest.raises(PruningError, match="no layer is left to prune: the model has none"):
        prune_layers(MODULE, [], {}, MagnitudePrune(0.5), {})


def test_densities_that_nothing_takes() -> None:
    scheme = MagnitudePrune(0.5)
    notes = {**ALL, NAMES[0]: "left alone"}
    with pytest.raises(PruningError, match=f"density={NAMES[0]!r} matches no layer"):
        prune_layers(MODULE, LAYERS, notes, scheme, {NAMES[0]: 0.5})
    notes = choose_layers(LAYERS, PatternPrune())
    with pytest.raises(OptionError, match=r"entries=4 keep 0\.444 to 0\.444"):
        prune_layers(MODULE, LAYERS, notes, PatternPrune(), {"*": 0.5})
