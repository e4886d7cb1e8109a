"""The pass that prunes a module's layers, and keeps a report of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm

from tvm_ext.errors import OptionError, PruningError
from tvm_ext.passes.pruning.finite import check_finite
from tvm_ext.passes.pruning.options import check_density
from tvm_ext.passes.pruning.prunable import Prunable, prunables, replace_weights
from tvm_ext.passes.pruning.report import PruningReport, layer_report
from tvm_ext.passes.pruning.scheme import Scheme
from tvm_ext.passes.pruning.selection import Patterns, as_patterns, per_layer, select

Density = float | Mapping[str, float]


@tvm.transform.module_pass(opt_level=0, name="Prune")
class Prune:
    """Set weights of `main` to zero by a scheme.

    Parameters
    ----------
    scheme : Scheme
        `PatternPrune`, `BlockPrune`, `MagnitudePrune` or another one.
    include : str or iterable of str
        Names of layers to prune, or patterns as of a shell; all layers if there are none.
    exclude : str or iterable of str, optional
        The same for layers to leave alone. If it isn't given, the first convolution and the last
        dense layer are, unless `include` has their names themselves.
    density : float or Mapping[str, float], optional
        In place of the scheme's own: for all layers, or pattern -> share of the weights to keep.
        The first pattern that matches a layer counts; such a layer is pruned for itself, also where
        the scheme lets layers compete.

    Attributes
    ----------
    report : PruningReport
        What the last run has done.

    Raises
    ------
    OptionError
        An option has a value that it doesn't know.
    PruningError
        When it runs: a pattern matches no layer, the scheme takes none of them or not one that
        `include` names, or a weight is NaN or infinite. Nothing has been changed then.
    """

    def __init__(
        self,
        scheme: Scheme,
        include: Patterns = (),
        exclude: Patterns | None = None,
        density: Density | None = None,
    ) -> None:
        check_scheme(scheme)
        self._scheme = scheme
        self._include = as_patterns(include)
        self._exclude = exclude if exclude is None else as_patterns(exclude)
        self._density = {"*": density} if not isinstance(density, Mapping | None) else density or {}
        for pattern, share in self._density.items():
            check_density(f"density for {pattern!r}", share)
        self.report = PruningReport(())

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Prune `main`."""
        layers = prunables(mod)
        chosen, notes = choose_layers(layers, self._scheme, self._include, self._exclude)
        kept = _masks(chosen, self._scheme, self._density)
        pruned = {x.name: np.where(kept[x.name], x.weights, 0) for x in chosen}
        self.report = PruningReport(
            tuple(layer_report(x, pruned.get(x.name, x.weights), notes[x.name]) for x in layers)
        )
        return replace_weights(mod, pruned)


def check_scheme(scheme: Any) -> None:
    """Refuse what isn't a scheme.

    Raises
    ------
    OptionError
    """
    if not isinstance(scheme, Scheme):
        raise OptionError(f"scheme={scheme!r} has to be a PatternPrune, BlockPrune or other Scheme")


def choose_layers(
    layers: Sequence[Prunable], scheme: Scheme, include: Patterns, exclude: Patterns | None
) -> tuple[list[Prunable], dict[str, str]]:
    """The layers to prune, and for each layer why it is left alone, else an empty string.

    Raises
    ------
    PruningError
        As for `Prune`.
    """
    if not layers:
        raise PruningError("the model has no layer that can be pruned")
    notes = select(layers, include, exclude)
    for layer in layers:
        if notes[layer.name]:
            continue
        notes[layer.name] = scheme.refuses(layer.weights.shape)
        if notes[layer.name] and layer.name in as_patterns(include):
            raise PruningError(f"layer {layer.name}: {notes[layer.name]}")
    chosen = [layer for layer in layers if not notes[layer.name]]
    if not chosen:
        reasons = "; ".join(f"{name}: {note}" for name, note in notes.items())
        raise PruningError(f"no layer is left to prune: {reasons}")
    for layer in chosen:
        check_finite(layer.name, layer.weights)
    return chosen, notes


def _masks(
    layers: Sequence[Prunable], scheme: Scheme, density: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """What is kept of each layer."""
    weights = {layer.name: layer.weights for layer in layers}
    shares = per_layer("density", density, list(weights))
    fitted = scheme.fitted(weights)
    own = {
        name: fitted.at_density(share, weights[name].shape).mask(weights[name])
        for name, share in shares.items()
    }
    return {**fitted.masks({n: w for n, w in weights.items() if n not in own}), **own}
