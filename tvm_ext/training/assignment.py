"""Which scheme prunes which weights, and what it keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import torch

from tvm_ext.errors import PruningError
from tvm_ext.passes.pruning.apply import check_scheme
from tvm_ext.passes.pruning.scheme import Scheme
from tvm_ext.passes.pruning.selection import as_patterns, per_layer
from tvm_ext.training.weights import Weight

Schemes: TypeAlias = Scheme | Mapping[str, Scheme | None]


class Assignment:
    """A scheme for each of some weights.

    Parameters
    ----------
    weights : sequence of Weight
        All of a model.
    schemes : Scheme or Mapping of str to (Scheme or None)
        One scheme for all layers but the first convolution and a dense layer at the end, as the
        passes do; or patterns (as of `fnmatch`) of layers' names -> their scheme, of which the
        first that matches counts. None, and no pattern at all, leave a layer dense.
    density : float, optional
        Share of the weights to keep in each layer, instead of what the schemes' options say.

    Attributes
    ----------
    weights : tuple of Weight
        Those that are pruned.
    skipped : dict of str to str
        Layers that were to be pruned, but that their scheme refuses, with the reason.

    Raises
    ------
    PruningError
        A pattern matches no layer, or nothing is left to prune.
    OptionError
        Something else is given as a scheme, or a scheme can't have the density.
    """

    def __init__(
        self, weights: Sequence[Weight], schemes: Schemes, density: float | None = None
    ) -> None:
        self.skipped: dict[str, str] = {}
        self._groups: list[tuple[Scheme, list[Weight]]] = []
        for scheme, members in self._fitting(weights, schemes):
            # What schemes find from all layers together is fixed here: it mustn't move while the
            # weights follow it.
            fitted = scheme.fitted({w.name: w.array() for w in members})
            if density is None:
                self._groups.append((fitted, members))
                continue
            # At a density of its own, a layer competes with no other, as in the passes.
            for w in members:
                own = fitted.at_density(density, tuple(w.parameter.shape))
                self._groups.append((own, [w]))
        self.weights = tuple(weight for _, members in self._groups for weight in members)
        if not self.weights:
            reasons = "".join(f"; {name}: {reason}" for name, reason in self.skipped.items())
            raise PruningError(f"no layer is left to prune{reasons}")

    @property
    def schemes(self) -> dict[str, Scheme]:
        """Layer name -> its scheme, with what it found from the weights fixed."""
        return {w.name: scheme for scheme, members in self._groups for w in members}

    def masks(self, values: Mapping[str, torch.Tensor] | None = None) -> dict[str, torch.Tensor]:
        """What is kept of the weights, or of other values in their place.

        Parameters
        ----------
        values : Mapping[str, torch.Tensor], optional
            Layer name -> a tensor in the shape of its weights.

        Returns
        -------
        dict of str to torch.Tensor
            Layer name -> bool, in the shape of its weights and on their device.

        Raises
        ------
        PruningError
            A value is NaN or infinite.
        """
        masks: dict[str, torch.Tensor] = {}
        for scheme, members in self._groups:
            arrays = {w.name: w.array(None if values is None else values[w.name]) for w in members}
            kept = scheme.masks(arrays)
            for w in members:
                masks[w.name] = torch.tensor(kept[w.name], device=w.parameter.device)
        return masks

    def _fitting(
        self, weights: Sequence[Weight], schemes: Schemes
    ) -> list[tuple[Scheme, list[Weight]]]:
        """Each scheme with the layers that it can prune; notes the others."""
        groups: list[tuple[Scheme, list[Weight]]] = []
        for weight, scheme in _chosen(weights, schemes):
            reason = scheme.refuses(tuple(weight.parameter.shape))
            if reason:
                self.skipped[weight.name] = reason
                continue
            members = next((members for known, members in groups if known == scheme), None)
            if members is None:
                groups.append((scheme, [weight]))
            else:
                members.append(weight)
        return groups


def default_weights(weights: Sequence[Weight]) -> list[Weight]:
    """All weights but those of the first convolution and of a dense layer at the end.

    These cost much accuracy and little time, so that the passes leave them out as well.
    """
    first = next((w for w in weights if w.kind == "conv"), None)
    last = weights[-1] if weights and weights[-1].kind == "dense" else None
    return [w for w in weights if w is not first and w is not last]


def named_weights(weights: Sequence[Weight], patterns: str | Iterable[str]) -> list[Weight]:
    """The weights that match a pattern.

    Raises
    ------
    PruningError
        A pattern matches no layer.
    """
    found = per_layer("layers", dict.fromkeys(as_patterns(patterns)), [w.name for w in weights])
    return [w for w in weights if w.name in found]


def _chosen(weights: Sequence[Weight], schemes: Schemes) -> list[tuple[Weight, Scheme]]:
    if not isinstance(schemes, Mapping):
        check_scheme(schemes)
        return [(w, schemes) for w in default_weights(weights)]
    for scheme in schemes.values():
        if scheme is not None:
            check_scheme(scheme)
    found = per_layer("schemes", schemes, [w.name for w in weights])
    return [(w, scheme) for w in weights if (scheme := found.get(w.name)) is not None]
