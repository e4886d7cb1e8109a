"""A convolution of images of one pixel."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.branch import Branch, Emit, Merger, common_length, remake
from tvm_ext.passes.rewriting.cost import Cost, cost, nbytes
from tvm_ext.passes.rewriting.rule import MergeRule, register_rule


@register_rule
class ConvAsMatmul(MergeRule):
    """A convolution copies the pixels of a task before it multiplies them; a product doesn't.

    Of larger images the kernels of 1x1 convolutions are matrix products in the blocked layout.
    """

    name = "conv_as_matmul"
    formula = "conv(x, w) of one pixel with a 1x1 kernel -> x @ w"
    tolerance = 1e-6
    operator = "nn.conv2d"
    least = 1

    def key(self, branch: Branch) -> Hashable:
        weights = df.value_of(branch.anchor.args[1])
        if weights is None or weights.shape[2:] != (1, 1):
            return None
        own: Hashable = branch.calls[0][0]
        return own

    def merge(self, branches: Sequence[Branch]) -> Merger | str:
        (branch,) = branches
        call = branch.anchor
        a, shape = call.attrs, df.shape_of(call)
        if a.groups != 1 or (a.data_layout, a.kernel_layout) != ("NCHW", "OIHW"):
            return f"{a.groups} groups in layout {a.data_layout}"
        if df.shape_of(call.args[0])[2:] != (1, 1) or shape[2:] != (1, 1):
            return "there are more pixels"
        count = common_length(branches, 1)
        root, last = branch.calls[count - 1]
        before = cost(branch.inner(count), last)
        copied = 2 * nbytes(call.args[0])
        after = Cost(before.flops, before.bytes - copied, before.operators + 2)

        def flat(index: int, number: int) -> Any:
            argument = branch.calls[index][1].args[number]
            value = df.value_of(argument)
            if value is None or value.ndim < 3:
                return argument
            full = (1,) * (4 - value.ndim) + value.shape
            return df.constant(value.reshape(full[:2]))

        def build(new: Any, emit: Emit) -> list[Any]:
            weights = df.value_of(call.args[1])
            assert weights is not None
            matrix = df.constant(weights.reshape(weights.shape[:2]).T)
            rows = emit(relax.op.reshape(new, df.shape_of(call.args[0])[:2]))
            product = relax.op.matmul(rows, matrix, a.out_dtype)
            return [relax.op.reshape(remake(branch, count, product, emit, flat), shape)]

        return Merger(call.args[0], (root,), build, before, after)
