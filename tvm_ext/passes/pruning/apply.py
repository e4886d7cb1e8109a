"""From a scheme and its layers to a pruned module and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm

from tvm_ext.errors import OptionError, PruningError
from tvm_ext.passes.pruning.finite import check_finite
from tvm_ext.passes.pruning.prunable import Prunable, replace_weights
from tvm_ext.passes.pruning.report import PruningReport, layer_report
from tvm_ext.passes.pruning.scheme import Scheme
from tvm_ext.passes.pruning.selection import Patterns, as_patterns, per_layer, select


def check_scheme(scheme: Any) -> None:
    """Refuse what isn't a scheme.

    Raises
    ------
    OptionError
    """
    if not isinstance(scheme, Scheme):
        raise OptionError(f"scheme={scheme!r} has to be a PatternPrune, BlockPrune or other Scheme")


def choose_layers(
    layers: Sequence[Prunable],
    scheme: Scheme,
    include: Patterns = (),
    exclude: Patterns | None = None,
) -> dict[str, str]:
    """Why each layer is left alone; an empty string for one that is pruned.

    Parameters
    ----------
    layers : sequence of Prunable
    scheme : Scheme
    include, exclude
        As for `Prune`.

    Raises
    ------
    PruningError
        A pattern matches no layer, the scheme doesn't take a layer that `include` names, or a
        weight of a layer that is to be pruned is NaN or infinite.
    """
    named = as_patterns(include)
    notes = select(layers, named, exclude)
    for layer in layers:
        if notes[layer.name]:
            continue
        notes[layer.name] = refusal = scheme.refuses(layer.weights.shape)
        if refusal and layer.name in named:
            raise PruningError(f"layer {layer.name}: {refusal}")
        if not refusal:
            check_finite(layer.name, layer.weights)
    return notes


def prune_layers(
    mod: tvm.IRModule,
    layers: Sequence[Prunable],
    notes: Mapping[str, str],
    scheme: Scheme,
    density: Mapping[str, float],
) -> tuple[tvm.IRModule, PruningReport]:
    """Set weights of the layers without a note to zero.

    Parameters
    ----------
    mod : tvm.IRModule
    layers : sequence of Prunable
        All that `mod` has.
    notes : Mapping[str, str]
        As `choose_layers` returns them.
    scheme : Scheme
    density : Mapping[str, float]
        Pattern -> share of the weights to keep in place of the scheme's own. The first pattern that
        matches a layer counts, and such a layer doesn't compete with others.

    Raises
    ------
    PruningError
        No layer is left to prune, or a pattern matches none of them.
    OptionError
        The scheme can't keep such a share.
    """
    weights = {x.name: x.weights for x in layers if not notes[x.name]}
    if not weights:
        reasons = "; ".join(f"{name}: {note}" for name, note in notes.items())
        raise PruningError(f"no layer is left to prune: {reasons or 'the model has none'}")
    fitted = scheme.fitted(weights)
    kept = {
        name: fitted.at_density(share, weights[name].shape).mask(weights[name])
        for name, share in per_layer("density", density, list(weights)).items()
    }
    kept.update(fitted.masks({name: w for name, w in weights.items() if name not in kept}))
    pruned = {name: np.where(kept[name], w, 0) for name, w in weights.items()}
    rows = (layer_report(x, pruned.get(x.name, x.weights), notes[x.name]) for x in layers)
    return replace_weights(mod, pruned), PruningReport(tuple(rows))
