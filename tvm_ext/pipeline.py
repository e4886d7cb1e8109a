"""The graph passes, in order: from a loaded module to one cut into layers."""

from __future__ import annotations

import tvm
from tvm import relax

from tvm_ext.passes.fold_constants import FoldConstants
from tvm_ext.passes.fold_scale import FoldScale
from tvm_ext.passes.fuse_groups import FuseGroups
from tvm_ext.passes.merge_affine import MergeAffine
from tvm_ext.passes.rewriting import RewriteGraph
from tvm_ext.passes.simplify_batch_norm import SimplifyBatchNorm
from tvm_ext.passes.split_to_slices import SplitToSlices
from tvm_ext.passes.widen_half import WidenHalf


def graph_pipeline() -> tvm.transform.Sequential:
    """Every pass between loading and planning."""
    return tvm.transform.Sequential(
        [
            relax.transform.CanonicalizeBindings(),
            WidenHalf(),
            relax.transform.EliminateCommonSubexpr(),
            FoldConstants(),
            SplitToSlices(),
            SimplifyBatchNorm(),
            FoldConstants(),
            RewriteGraph(),
            MergeAffine(),
            FoldScale(),
            relax.transform.DeadCodeElimination(),
            FuseGroups(),
        ]
    )
