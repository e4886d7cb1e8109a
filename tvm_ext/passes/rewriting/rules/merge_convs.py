"""Convolutions of the same image with several banks of filters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import tvm_ffi
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.branch import Branch
from tvm_ext.passes.rewriting.cost import BLOCK
from tvm_ext.passes.rewriting.rule import register_rule
from tvm_ext.passes.rewriting.shared_input import SharedInput


@register_rule
class MergeConvs(SharedInput):
    """The image is read once; whole blocks of channels of one image are views."""

    name = "merge_convs"
    formula = "conv(x, v), conv(x, w) -> slices of conv(x, [v; w]) of the same geometry"
    # No gain measured: the image is read from the cache, and wider results leave it.
    optional = True
    operator = "nn.conv2d"

    def key(self, branch: Branch) -> Hashable:
        call = branch.anchor
        weights = df.value_of(call.args[1])
        a = call.attrs
        plain = a.groups == 1 and (a.data_layout, a.kernel_layout) == ("NCHW", "OIHW")
        if weights is None or not plain:
            return None
        return weights.shape[1:], str(weights.dtype), tvm_ffi.structural_hash(a)

    def axis(self, call: relax.Call) -> int:
        return 1

    def is_view(self, shape: tuple[int, ...], begin: int, end: int) -> bool:
        whole = end % BLOCK == 0 or end == shape[1]
        return shape[0] == 1 and begin % BLOCK == 0 and whole

    def join(self, shared: Any, calls: Sequence[relax.Call]) -> relax.Call:
        weights = [df.value_of(call.args[1]) for call in calls]
        joined = df.constant(np.concatenate([w for w in weights if w is not None]))
        return relax.Call(calls[0].op, [shared, joined], calls[0].attrs, calls[0].ty_args)
