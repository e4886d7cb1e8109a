"""The pass that prunes a module's layers, and keeps a report of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm

from tvm_ext.passes.pruning.apply import check_scheme, choose_layers, prune_layers
from tvm_ext.passes.pruning.options import check_density
from tvm_ext.passes.pruning.prunable import prunables
from tvm_ext.passes.pruning.report import PruningReport
from tvm_ext.passes.pruning.scheme import Scheme
from tvm_ext.passes.pruning.selection import Patterns, as_patterns


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
        The first pattern that matches a layer counts. Such a layer is pruned for itself, also where
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
        When it runs: a pattern matches no layer, the scheme doesn't take a layer that `include`
        names or takes none at all, or a weight is NaN or infinite.
    """

    def __init__(
        self,
        scheme: Scheme,
        include: Patterns = (),
        exclude: Patterns | None = None,
        density: float | Mapping[str, float] | None = None,
    ) -> None:
        check_scheme(scheme)
        self._scheme = scheme
        self._include = as_patterns(include)
        self._exclude = exclude if exclude is None else as_patterns(exclude)
        self._density = by_pattern(density)
        for pattern, share in self._density.items():
            check_density(f"density of {pattern!r}", share)
        self.report = PruningReport(())

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Prune `main`."""
        layers = prunables(mod)
        notes = choose_layers(layers, self._scheme, self._include, self._exclude)
        mod, self.report = prune_layers(mod, layers, notes, self._scheme, self._density)
        return mod


def by_pattern(value: float | Mapping[str, float] | None) -> dict[str, float]:
    """An option that is given for all layers, or by pattern, or not at all."""
    if value is None:
        return {}
    return dict(value) if isinstance(value, Mapping) else {"*": value}
