"""Relax passes, each usable alone or in `tvm.transform.Sequential`."""

from tvm_ext.passes.fold_constants import FoldConstants
from tvm_ext.passes.fold_scale import FoldScale
from tvm_ext.passes.fuse_groups import FuseGroups
from tvm_ext.passes.merge_affine import MergeAffine
from tvm_ext.passes.simplify_batch_norm import SimplifyBatchNorm
from tvm_ext.passes.split_to_slices import SplitToSlices
from tvm_ext.passes.widen_half import WidenHalf

__all__ = [
    "FoldConstants",
    "FoldScale",
    "FuseGroups",
    "MergeAffine",
    "SimplifyBatchNorm",
    "SplitToSlices",
    "WidenHalf",
]
