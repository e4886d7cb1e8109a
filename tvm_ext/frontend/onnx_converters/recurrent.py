"""RNN, GRU and LSTM: what one step computes from the gates and the state."""

from __future__ import annotations

from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.recurrent_unroll import Cell, State, unrolled
from tvm_ext.frontend.onnx_converters.values import const, constant, optional
from tvm_ext.frontend.onnx_registry import Attributes, Inputs, Node, register_onnx_converter


@register_onnx_converter("RNN")
def convert_rnn(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> list[relax.Expr]:
    """Convert RNN: ``h = f(x W + h R + b)``."""

    def step(cell: Cell, x: relax.Expr, state: State) -> State:
        total = cell.op(relax.op.add, x, cell.times(state[0], cell.recurrence))
        return (cell.op(cell.activations[0], total),)

    return unrolled(bb, inputs, attrs, 1, ("Tanh",), step)


@register_onnx_converter("GRU")
def convert_gru(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> list[relax.Expr]:
    """Convert GRU, gates z (update), r (reset) and h (candidate).

    ``h' = (1 - z) * candidate + z * h``; the reset multiplies the state before its product, or
    with ``linear_before_reset`` the product and its bias after it.
    """
    late_reset = bool(attrs.get("linear_before_reset", 0))

    def step(cell: Cell, x: relax.Expr, state: State) -> State:
        (h,) = state
        size = 2 * cell.hidden
        if late_reset:
            product = cell.times(h, cell.recurrence)
            product = cell.op(relax.op.add, product, cell.recurrent_bias)
            share = cell.gate(product, 0, 2)
        else:
            share = cell.times(h, _columns(cell.bb, cell.recurrence, 0, size))
        both = cell.op(relax.op.add, cell.gate(x, 0, 2), share)
        z, r = (cell.op(cell.activations[0], cell.gate(both, i)) for i in range(2))
        if late_reset:
            share = cell.op(relax.op.multiply, r, cell.gate(product, 2))
        else:
            weight = _columns(cell.bb, cell.recurrence, size, 3 * cell.hidden)
            share = cell.times(cell.op(relax.op.multiply, r, h), weight)
        candidate = cell.op(relax.op.add, cell.gate(x, 2), share)
        candidate = cell.op(cell.activations[1], candidate)
        kept = cell.op(relax.op.multiply, z, cell.op(relax.op.subtract, h, candidate))
        return (cell.op(relax.op.add, candidate, kept),)

    return unrolled(bb, inputs, attrs, 3, ("Sigmoid", "Tanh"), step, separate_bias=late_reset)


@register_onnx_converter("LSTM")
def convert_lstm(
    bb: relax.BlockBuilder, inputs: Inputs, attrs: Attributes, node: Node
) -> list[relax.Expr]:
    """Convert LSTM without peepholes, gates i (input), o (output), f (forget) and c (cell)."""
    if optional(inputs, 7) is not None:
        raise ModelError("the input 'P' (peepholes) isn't supported")
    if attrs.get("input_forget", 0):
        raise ModelError("input_forget=1 isn't supported")

    def step(cell: Cell, x: relax.Expr, state: State) -> State:
        h, c = state
        total = cell.op(relax.op.add, x, cell.times(h, cell.recurrence))
        # Each gate is activated after its own slice: the slices then read ``total`` inside the
        # kernels of c and h, and no kernel of its own computes three gates at once.
        i, o, f = (cell.op(cell.activations[0], cell.gate(total, gate)) for gate in range(3))
        candidate = cell.op(cell.activations[1], cell.gate(total, 3))
        new = cell.op(relax.op.multiply, i, candidate)
        c = cell.op(relax.op.add, cell.op(relax.op.multiply, f, c), new)
        h = cell.op(relax.op.multiply, o, cell.op(cell.activations[2], c))
        return h, c

    return unrolled(bb, inputs, attrs, 4, ("Sigmoid", "Tanh", "Tanh"), step)


def _columns(bb: relax.BlockBuilder, weight: relax.Expr, begin: int, end: int) -> relax.Expr:
    value = constant(weight)
    if value is not None:
        return const(value[:, begin:end])
    return bb.emit(relax.op.strided_slice(weight, [1], [begin], [end]))
