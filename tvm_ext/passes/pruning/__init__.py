"""Pruning: schemes that say which weights are kept, and the pass that sets the others to zero."""

from tvm_ext.passes.pruning.block import BlockPrune
from tvm_ext.passes.pruning.lottery import LotteryTicket
from tvm_ext.passes.pruning.magnitude import MagnitudePrune
from tvm_ext.passes.pruning.pattern import PatternPrune
from tvm_ext.passes.pruning.prunable import Prunable, prunables, replace_weights
from tvm_ext.passes.pruning.prune_pass import Prune
from tvm_ext.passes.pruning.report import LayerReport, PruningReport
from tvm_ext.passes.pruning.scheme import Scheme

__all__ = [
    "BlockPrune",
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
