"""Relax passes, each usable alone or in `tvm.transform.Sequential`."""

from tvm_ext.passes.fold_constants import FoldConstants
from tvm_ext.passes.fold_scale import FoldScale
from tvm_ext.passes.fusion.universal_fusion import UniversalFusion
from tvm_ext.passes.keep_reduced_dims import KeepReducedDims
from tvm_ext.passes.merge_affine import MergeAffine
from tvm_ext.passes.pruning.prune_pass import Prune
from tvm_ext.passes.scale_behind_product import ScaleBehindProduct
from tvm_ext.passes.simplify_batch_norm import SimplifyBatchNorm
from tvm_ext.passes.slice_before_transpose import SliceBeforeTranspose
from tvm_ext.passes.split_to_slices import SplitToSlices
from tvm_ext.passes.widen_half import WidenHalf

__all__ = [
    "FoldConstants",
    "FoldScale",
    "KeepReducedDims",
    "MergeAffine",
    "Prune",
    "ScaleBehindProduct",
    "SimplifyBatchNorm",
    "SliceBeforeTranspose",
    "SplitToSlices",
    "UniversalFusion",
    "WidenHalf",
]
