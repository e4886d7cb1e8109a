"""Pruning: which weights are kept, and the passes that set the others to zero or remove them."""

from tvm_ext.passes.pruning.block import BlockPrune
from tvm_ext.passes.pruning.channel_prune import ChannelPrune
from tvm_ext.passes.pruning.lottery import LotteryTicket
from tvm_ext.passes.pruning.magnitude import MagnitudePrune
from tvm_ext.passes.pruning.pattern import PatternPrune
from tvm_ext.passes.pruning.prunable import Prunable, prunables, replace_weights
from tvm_ext.passes.pruning.prune_pass import Prune
from tvm_ext.passes.pruning.report import LayerReport, PruningReport
from tvm_ext.passes.pruning.scheme import Scheme

__all__ = [
    "BlockPrune",
    "ChannelPrune",
    "LayerReport",
    "LotteryTicket",
    "MagnitudePrune",
    "PatternPrune",
    "Prunable",
    "Prune",
    "PruningReport",
    "Scheme",
    "prunables",
    "replace_weights",
]
