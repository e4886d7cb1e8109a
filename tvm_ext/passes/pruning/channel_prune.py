"""Structured pruning: whole output channels go, and tensors become smaller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm

from tvm_ext.errors import PruningError
from tvm_ext.passes.fold_constants import FoldConstants
from tvm_ext.passes.pruning.channel_flow import follow, shrink
from tvm_ext.passes.pruning.channel_ranking import NORMS, Selection, keep_channels
from tvm_ext.passes.pruning.channel_report import ChannelReport, layer_channels
from tvm_ext.passes.pruning.finite import check_finite
from tvm_ext.passes.pruning.options import check_choice, check_count, check_density
from tvm_ext.passes.pruning.prunable import Prunable, prunables
from tvm_ext.passes.pruning.selection import Patterns, as_patterns, select

# Channels of a shuffle are tied, so that it stays one, unless less than this share of the filters
# would go that go without.
_TIED_SHARE = 0.9


@tvm.transform.module_pass(opt_level=0, name="ChannelPrune")
@dataclass(frozen=True)
class ChannelPrune:
    """Remove the output channels of convolutions and dense layers that weigh least.

    The norms of their filters rank the channels (Li et al., Pruning Filters for Efficient ConvNets,
    2017, section 3.1). Channels that depend on each other, as both sides of an addition do, go
    together and are ranked by the sum of the norms (Fang et al., DepGraph, 2023, section 3).
    What reads a removed channel loses the weights for it; constants, slices and reshapes in between
    are adjusted. Inputs and outputs of the model keep their shapes.

    Parameters
    ----------
    density : float
        Share of the channels that is kept, in (0, 1]: of each layer, or of the layers together that
        have the same ones. A layer in groups loses as many of each group.
    norm : str
        ``"l1"``, the sum of a filter's magnitudes, or ``"l2"``.
    multiple : int
        The number of channels that are kept is rounded up to a multiple of this. The default fills
        vectors of 256 bits; 1 keeps exactly the share.
    include : str or iterable of str
        Names of layers, or patterns as of a shell, whose filters may go; all if there are none.
    exclude : str or iterable of str, optional
        The same for layers that keep their filters, as does every layer that is tied to one. If it
        isn't given, they are the first convolution and the last dense layer, unless `include` has
        their names themselves.

    Attributes
    ----------
    report : ChannelReport
        What the last run has done, and for each layer that kept its filters why.

    Raises
    ------
    OptionError
        An option has a value that it doesn't know.
    PruningError
        When it runs: there is no layer to prune, a pattern matches none, or a weight is NaN or
        infinite. Nothing has been changed then.

    Notes
    -----
    A removed channel is taken for zero behind its filter, bias, batch norm and whatever else
    follows in the channel. Where an activation makes something else of a zero, as a sigmoid does,
    the constant that it contributed to the next layer is dropped.

    Constants are folded first. Of a channel shuffle the channels at the same place of all groups go
    together, so that it stays a shuffle; where clearly fewer channels could go then, as behind many
    shuffles, they aren't tied and the shuffle becomes a gather.
    """

    density: float
    norm: str = "l1"
    multiple: int = 8
    include: Patterns = ()
    exclude: Patterns | None = None
    report: ChannelReport = field(init=False, repr=False, compare=False, default=ChannelReport(()))

    def __post_init__(self) -> None:
        check_density("density", self.density)
        check_choice("norm", self.norm, NORMS)
        check_count("multiple", self.multiple)
        # A list that changes later, or an iterator, would make other options of these.
        object.__setattr__(self, "include", as_patterns(self.include))
        if self.exclude is not None:
            object.__setattr__(self, "exclude", as_patterns(self.exclude))

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Prune `main`."""
        pruned, report = self.apply(mod)
        object.__setattr__(self, "report", report)
        return pruned

    def apply(self, mod: tvm.IRModule) -> tuple[tvm.IRModule, ChannelReport]:
        """Prune `main`.

        Parameters
        ----------
        mod : tvm.IRModule
            As `load_model` gives it, or behind graph passes that don't cut it into groups yet.

        Returns
        -------
        tvm.IRModule
            The smaller model, with the inputs and outputs of `mod`.
        ChannelReport

        Raises
        ------
        PruningError
            As the class says.
        """
        folded = FoldConstants()(mod)
        layers = prunables(folded)
        if not layers:
            raise PruningError("the model has no layer that can be pruned")
        notes = select(layers, self.include, self.exclude)
        for layer in layers:
            if not notes[layer.name]:
                check_finite(layer.name, layer.weights)
        found = self._chosen(folded, layers, notes, boxes=True)
        if found.channels.joints:
            free = self._chosen(folded, layers, notes, boxes=False)
            if found.removed < _TIED_SHARE * free.removed:
                found = free
        pruned = shrink(folded, found.channels, found.kept)
        rows = (layer_channels(x, found.channels, found.kept, found.notes[x.name]) for x in layers)
        return pruned, ChannelReport(tuple(rows))

    def _chosen(
        self, mod: tvm.IRModule, layers: list[Prunable], notes: dict[str, str], boxes: bool
    ) -> Selection:
        channels = follow(mod, layers, notes, boxes)
        return keep_channels(channels, self.norm, self.density, self.multiple)
