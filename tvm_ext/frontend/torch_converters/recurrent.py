"""LSTM, GRU and RNN: torch's layers one after the other, each by the ONNX converter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.recurrent import convert_gru, convert_lstm, convert_rnn
from tvm_ext.frontend.onnx_converters.values import const, required_constant, shape_of
from tvm_ext.frontend.torch_registry import Call, converts

aten = torch.ops.aten


@converts(aten.lstm.input)
def convert_lstms(call: Call) -> list[relax.Expr]:
    """Convert an LSTM; torch's gates i, f, g, o are i, o, f, c in ONNX."""
    return _layers(call, convert_lstm, (0, 3, 1, 2), call["hx"])


@converts(aten.gru.input)
def convert_grus(call: Call) -> list[relax.Expr]:
    """Convert a GRU; torch's gates r, z, n are z, r, h in ONNX."""
    return _layers(call, convert_gru, (1, 0, 2), [call["hx"]], linear_before_reset=1)


@converts(aten.rnn_tanh.input)
def convert_tanh_rnns(call: Call) -> list[relax.Expr]:
    """Convert an RNN with tanh."""
    return _layers(call, convert_rnn, (0,), [call["hx"]], activations=("Tanh",))


@converts(aten.rnn_relu.input)
def convert_relu_rnns(call: Call) -> list[relax.Expr]:
    """Convert an RNN with ReLU."""
    return _layers(call, convert_rnn, (0,), [call["hx"]], activations=("Relu",))


def _layers(
    call: Call,
    converter: Callable[..., Any],
    gates: tuple[int, ...],
    states: Sequence[relax.Expr],
    **attrs: Any,
) -> list[relax.Expr]:
    """The sequence, then the last value of each state, (layers * directions, B, H)."""
    if call["train"] and call["dropout"]:
        raise ModelError(f"dropout is {call['dropout']} in training mode; export after eval()")
    directions = 2 if call["bidirectional"] else 1
    attrs["direction"] = "bidirectional" if call["bidirectional"] else "forward"
    if "activations" in attrs:
        attrs["activations"] = attrs["activations"] * directions
    count = len(call["params"]) // (call["num_layers"] * directions)
    if count != (4 if call["has_biases"] else 2):
        raise ModelError("proj_size isn't supported")

    data = call["input"]
    if call["batch_first"]:
        data = call.emit(relax.op.permute_dims, data, [1, 0, 2])
    finals: list[list[relax.Expr]] = [[] for _ in states]
    for layer in range(call["num_layers"]):
        first = layer * directions
        params = [
            call["params"][d * count : (d + 1) * count] for d in range(first, first + directions)
        ]
        initial = [_rows(call, state, first, directions) for state in states]
        results = call.onnx(
            converter,
            [data, *_weights(params, gates), None, *initial],
            outputs=1 + len(states),
            **attrs,
        )
        # (T, D, B, H) -> (T, B, D * H)
        time, _, batch, hidden = shape_of(results[0])
        data = call.emit(relax.op.permute_dims, results[0], [0, 2, 1, 3])
        data = call.emit(relax.op.reshape, data, (time, batch, directions * hidden))
        for final, result in zip(finals, results[1:], strict=True):
            final.append(result)
    if call["batch_first"]:
        data = call.emit(relax.op.permute_dims, data, [1, 0, 2])
    joined = [f[0] if len(f) == 1 else call.emit(relax.op.concat, f, 0) for f in finals]
    return [data, *joined]


def _rows(call: Call, state: relax.Expr, first: int, count: int) -> relax.Expr:
    if shape_of(state)[0] == count:
        return state
    return call.emit(relax.op.strided_slice, state, [0], [first], [first + count])


def _weights(
    params: Sequence[Sequence[relax.Expr]], gates: tuple[int, ...]
) -> tuple[relax.Expr, relax.Expr, relax.Expr | None]:
    """ONNX's W, R and B of one layer, its directions stacked."""

    def ordered(expr: relax.Expr) -> np.ndarray:
        value = required_constant(expr, "params")
        return np.concatenate([np.split(value, len(gates))[g] for g in gates])

    stacked = [[ordered(p) for p in direction] for direction in params]
    w = np.stack([d[0] for d in stacked])
    r = np.stack([d[1] for d in stacked])
    if len(stacked[0]) == 2:
        return const(w), const(r), None
    return const(w), const(r), const(np.stack([np.concatenate(d[2:]) for d in stacked]))
