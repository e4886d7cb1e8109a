"""A recurrent cell unrolled over time, in one direction or both.

The input's share of all gates is one matrix product over all time steps; each step then adds the
state's share. Gates lie side by side in columns, H columns a gate, in ONNX's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import (
    const,
    constant,
    dtype_of,
    optional,
    reshaped,
    shape_of,
)
from tvm_ext.frontend.onnx_registry import Attributes, Inputs

Activation = Callable[[relax.Expr], relax.Expr]

_ACTIVATIONS: dict[str, Activation] = {
    "sigmoid": relax.op.sigmoid,
    "tanh": relax.op.tanh,
    "relu": relax.op.nn.relu,
}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass
class Cell:
    """One direction: what its step needs.

    Attributes
    ----------
    bb : relax.BlockBuilder
    hidden : int
        Width H of the state.
    recurrence : relax.Expr
        The state's weights, (H, gates * H).
    recurrent_bias : relax.Expr
        (1, gates * H); already part of the gates that a step gets, unless it keeps it apart.
    activations : list of callable
    """

    bb: relax.BlockBuilder
    hidden: int
    recurrence: relax.Expr
    recurrent_bias: relax.Expr
    activations: list[Activation]

    def gate(self, gates: relax.Expr, index: int, count: int = 1) -> relax.Expr:
        """Some of the gates that lie side by side."""
        begin = index * self.hidden
        end = begin + count * self.hidden
        return self.bb.emit(relax.op.strided_slice(gates, [1], [begin], [end]))

    def op(self, function: Callable[..., relax.Expr], *args: relax.Expr) -> relax.Expr:
        """What an operator returns, bound."""
        return self.bb.emit(function(*args))

    def times(self, state: relax.Expr, weight: relax.Expr) -> relax.Expr:
        """The state's share of the gates."""
        return self.op(relax.op.matmul, state, weight)


State = tuple[relax.Expr, ...]
Step = Callable[[Cell, relax.Expr, State], State]


def unrolled(
    bb: relax.BlockBuilder,
    inputs: Inputs,
    attrs: Attributes,
    gates: int,
    default_activations: Sequence[str],
    step: Step,
    *,
    separate_bias: bool = False,
) -> list[relax.Expr]:
    """Run `step` over time in each direction.

    Parameters
    ----------
    bb : relax.BlockBuilder
    inputs : sequence of relax.Expr or None
        The node's: X, W, R, B, sequence_lens, initial_h and, for LSTM, initial_c.
    attrs : dict of str to Any
        The node's.
    gates : int
        Gates of one cell.
    default_activations : sequence of str
        Of one direction, where the node names none.
    step : callable
        ``step(cell, x, state)``: the next state from the input's share of the gates,
        (B, gates * H), and the state, whose first part is the output.
    separate_bias : bool
        Whether the step adds the state's bias, instead of finding it in `x`.

    Returns
    -------
    list of relax.Expr
        Y (T, D, B, H), then the last value of each state (D, B, H); batch first if ``layout`` is 1.

    Raises
    ------
    ModelError
        Sequences of unequal length, an unknown direction or an unknown activation.
    """
    data, w, r, bias = inputs[0], inputs[1], inputs[2], optional(inputs, 3)
    batch_first = bool(attrs.get("layout", 0))
    if batch_first:
        data = bb.emit(relax.op.permute_dims(data, [1, 0, 2]))
    time, batch, features = shape_of(data)
    hidden = shape_of(r)[2]
    _check_lengths(optional(inputs, 4), time)
    direction = attrs.get("direction", "forward")
    if direction not in _DIRECTIONS:
        raise ModelError(f"direction is {direction!r}; it must be one of {', '.join(_DIRECTIONS)}")
    backwards = _DIRECTIONS[direction]
    functions = _activations(attrs, default_activations, len(backwards))
    flat = bb.emit(relax.op.reshape(data, (time * batch, features)))
    initial = [optional(inputs, 5)] + ([optional(inputs, 6)] if gates == 4 else [])

    sequences, finals = [], []
    for d, backward in enumerate(backwards):
        w_bias, r_bias = _biases(bb, bias, d, gates * hidden, dtype_of(data))
        cell = Cell(bb, hidden, _transposed(bb, r, d), r_bias, functions[d])
        gate_inputs = bb.emit(relax.op.matmul(flat, _transposed(bb, w, d)))
        gate_inputs = bb.emit(relax.op.add(gate_inputs, w_bias))
        if not separate_bias:
            gate_inputs = bb.emit(relax.op.add(gate_inputs, r_bias))
        state = tuple(
            _initial(bb, value, d, batch, hidden, dtype_of(data), batch_first) for value in initial
        )
        outputs: list[relax.Expr] = [None] * time
        for t in reversed(range(time)) if backward else range(time):
            rows = relax.op.strided_slice(gate_inputs, [0], [t * batch], [(t + 1) * batch])
            state = step(cell, bb.emit(rows), state)
            outputs[t] = state[0]
        stacked = outputs[0] if time == 1 else bb.emit(relax.op.concat(outputs, 0))
        sequences.append(bb.emit(relax.op.reshape(stacked, (time, 1, batch, hidden))))
        finals.append([bb.emit(relax.op.reshape(s, (1, batch, hidden))) for s in state])

    results = [_joined(bb, sequences, 1)]
    results += [_joined(bb, list(states), 0) for states in zip(*finals, strict=True)]
    if batch_first:
        orders = [[2, 0, 1, 3]] + [[1, 0, 2]] * (len(results) - 1)
        results = [
            bb.emit(relax.op.permute_dims(x, order))
            for x, order in zip(results, orders, strict=True)
        ]
    return results


def _joined(bb: relax.BlockBuilder, parts: list[relax.Expr], axis: int) -> relax.Expr:
    return parts[0] if len(parts) == 1 else bb.emit(relax.op.concat(parts, axis))


def _check_lengths(lengths: relax.Expr | None, time: int) -> None:
    if lengths is None:
        return
    value = constant(lengths)
    if value is None or (value != time).any():
        seen = "computed at run time" if value is None else value.tolist()
        raise ModelError(f"sequence_lens is {seen}; only full sequences ({time}) are supported")


def _activations(
    attrs: Attributes, defaults: Sequence[str], directions: int
) -> list[list[Activation]]:
    names = list(attrs.get("activations", list(defaults) * directions))
    unknown = [name for name in names if name.lower() not in _ACTIVATIONS]
    if unknown:
        raise ModelError(f"activations {unknown}: only Sigmoid, Tanh and Relu are supported")
    clip = attrs.get("clip")
    functions = [_ACTIVATIONS[name.lower()] for name in names]
    if clip is not None:
        functions = [_clipped(function, clip) for function in functions]
    count = len(defaults)
    return [functions[d * count : (d + 1) * count] for d in range(directions)]


def _clipped(function: Activation, limit: float) -> Activation:
    return lambda x: function(relax.op.clip(x, -limit, limit))


def _biases(
    bb: relax.BlockBuilder, bias: relax.Expr | None, d: int, size: int, dtype: str
) -> tuple[relax.Expr, relax.Expr]:
    """Return the input's and the state's bias of one direction, each (1, gates * H)."""
    if bias is None:
        zeros = const(np.zeros((1, size), dtype))
        return zeros, zeros
    value = constant(bias)
    if value is not None:
        return const(value[d : d + 1, :size]), const(value[d : d + 1, size:])
    row = bb.emit(relax.op.strided_slice(bias, [0], [d], [d + 1]))
    return (
        bb.emit(relax.op.strided_slice(row, [1], [0], [size])),
        bb.emit(relax.op.strided_slice(row, [1], [size], [2 * size])),
    )


def _transposed(bb: relax.BlockBuilder, weight: relax.Expr, d: int) -> relax.Expr:
    """Return direction `d` of (D, gates * H, n) as (n, gates * H)."""
    value = constant(weight)
    if value is not None:
        return const(value[d].T)
    rows = bb.emit(relax.op.strided_slice(weight, [0], [d], [d + 1]))
    return bb.emit(relax.op.permute_dims(bb.emit(relax.op.squeeze(rows, [0])), [1, 0]))


def _initial(
    bb: relax.BlockBuilder,
    value: relax.Expr | None,
    d: int,
    batch: int,
    hidden: int,
    dtype: str,
    batch_first: bool,
) -> relax.Expr:
    """Return an initial state of one direction, (B, H)."""
    if value is None:
        return const(np.zeros((batch, hidden), dtype))
    axis = 1 if batch_first else 0
    if shape_of(value)[axis] > 1:
        value = bb.emit(relax.op.strided_slice(value, [axis], [d], [d + 1]))
    result = reshaped(value, (batch, hidden))
    return result if constant(result) is not None else bb.emit(result)
