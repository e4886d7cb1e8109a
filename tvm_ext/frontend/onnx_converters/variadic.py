"""Sum, Mean, Max and Min of any number of inputs, as chains of the operator that takes two.

TVM's importer stacks the inputs and reduces the stack: twice the memory traffic, and no pass would
see that a residual connection is an addition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from tvm import relax

from tvm_ext.frontend.onnx_converters.values import scalar
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


def _chain(operator: Callable[[relax.Expr, relax.Expr], relax.Expr]) -> Callable[..., relax.Expr]:
    """Return a converter that combines the inputs from left to right; shapes broadcast."""

    def convert(
        bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
    ) -> relax.Expr:
        return reduce(lambda left, right: bb.emit(operator(left, right)), inputs)

    return convert


_sum = register_onnx_converter("Sum", converter=_chain(relax.op.add))
register_onnx_converter("Max", converter=_chain(relax.op.maximum))
register_onnx_converter("Min", converter=_chain(relax.op.minimum))


@register_onnx_converter("Mean")
def convert_mean(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> relax.Expr:
    """Convert Mean: the inputs' sum divided by their number."""
    total = _sum(bb, inputs, attrs, node)
    return total if len(inputs) == 1 else relax.op.divide(total, scalar(len(inputs), total))
