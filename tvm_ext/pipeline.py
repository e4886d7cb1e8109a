"""The graph passes, in order: from a loaded module to one cut into layers."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from tvm_ext.passes.fold_constants import FoldConstants
from tvm_ext.passes.fold_scale import FoldScale
from tvm_ext.passes.fusion.universal_fusion import UniversalFusion
from tvm_ext.passes.keep_reduced_dims import KeepReducedDims
from tvm_ext.passes.merge_affine import MergeAffine
from tvm_ext.passes.rewriting import RewriteGraph
from tvm_ext.passes.scale_behind_product import ScaleBehindProduct
from tvm_ext.passes.simplify_batch_norm import SimplifyBatchNorm
from tvm_ext.passes.slice_before_transpose import SliceBeforeTranspose
from tvm_ext.passes.split_to_slices import SplitToSlices
from tvm_ext.passes.widen_half import WidenHalf
from tvm_ext.quantized import OutlineQuantized


def graph_pipeline(
    fusion: Any = None, outline: OutlineQuantized | None = None
) -> tvm.transform.Sequential:
    """Every pass between loading and planning; the last cuts the graph into groups.

    Parameters
    ----------
    fusion : pass, optional
        In place of `UniversalFusion()`, for which nothing is known of the machine.
    outline : OutlineQuantized, optional
        To read its refusals afterwards.
    """
    return tvm.transform.Sequential(
        [
            relax.transform.CanonicalizeBindings(),
            # Before constants are dequantised.
            outline or OutlineQuantized(),
            WidenHalf(),
            relax.transform.EliminateCommonSubexpr(),
            FoldConstants(),
            SplitToSlices(),
            KeepReducedDims(),
            SimplifyBatchNorm(),
            FoldConstants(),
            RewriteGraph(),
            SliceBeforeTranspose(),
            ScaleBehindProduct(),
            MergeAffine(),
            FoldScale(),
            relax.transform.DeadCodeElimination(),
            fusion or UniversalFusion(),
        ]
    )
