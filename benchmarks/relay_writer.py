"""Convolutional networks as Relay modules: the text that Relay would print, and a file of weights.

There is no Relay any more to save a network with; `bench_relay` needs one that is there as ONNX
too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.frontend.relay.params import write_relay_params

_ELEMENTWISE = {
    "relax.add": "add",
    "relax.divide": "divide",
    "relax.multiply": "multiply",
    "relax.nn.relu": "nn.relu",
    "relax.power": "power",
}


class RelayWriteError(ValueError):
    """An operator that this writer has no text for."""


def write_relay(mod: tvm.IRModule, folder: Path) -> tuple[Path, Path]:
    """Write ``main`` of a Relax module as Relay's text form 0.0.5 and its weights.

    Parameters
    ----------
    mod : tvm.IRModule
        A network as `tvm_ext.load_model` returns it: static shapes, one dataflow block, one output.
    folder : Path
        Gets ``model.relay.txt`` and ``model.params``.

    Returns
    -------
    text, params : Path

    Raises
    ------
    RelayWriteError
        The network has another operator than those of common convolutional networks.
    """
    writer = _Writer(mod["main"])
    text, params = folder / "model.relay.txt", folder / "model.params"
    text.write_text(writer.text(), encoding="utf-8")
    write_relay_params(params, writer.weights)
    return text, params


class _Writer:
    def __init__(self, main: relax.Function) -> None:
        self._main = main
        # What stands for each variable: a parameter, a number of the graph, or a field of one.
        self._names: dict[relax.Var, str] = {var: f"%{var.name}" for var in main.params}
        self._lines: list[str] = []
        self.weights: dict[str, np.ndarray] = {}

    def text(self) -> str:
        """The module's text."""
        for block in self._main.body.blocks:
            for binding in block.bindings:
                self._bind(binding.var, binding.value)
        inputs = [
            f"%{var.name}: {_type([int(n) for n in var.ty.shape], var.ty.dtype)}"
            for var in self._main.params
        ]
        weights = [f"%{name}: {_type(a.shape, a.dtype)}" for name, a in self.weights.items()]
        return (
            '#[version = "0.0.5"]\n'
            f"def @main({', '.join([*inputs, *weights])}) {{\n"
            + "".join(f"  {line};\n" for line in self._lines)
            + f"  {self._argument(self._main.body.body)}\n}}\n"
        )

    def _bind(self, var: relax.Var, value: Any) -> None:
        if isinstance(value, relax.Var):
            self._names[var] = self._names[value]
        elif isinstance(value, relax.TupleGetItem):
            self._names[var] = f"{self._names[value.tuple_value]}.{value.index}"
        else:
            self._names[var] = f"%{len(self._lines)}"
            self._lines.append(f"{self._names[var]} = {self._call(value)}")

    def _call(self, call: relax.Call) -> str:
        name = str(call.op.name)
        if name in _ELEMENTWISE:
            return _applied(_ELEMENTWISE[name], [self._argument(arg) for arg in call.args])
        make = _CALLS.get(name)
        if make is None:
            allowed = ", ".join(sorted([*_ELEMENTWISE, *_CALLS]))
            raise RelayWriteError(f"{name} can't be written; allowed are {allowed}")
        return make(self, call)

    def _argument(self, expr: Any) -> str:
        if isinstance(expr, relax.Var):
            return self._names[expr]
        if isinstance(expr, relax.Tuple):
            return f"({', '.join(self._argument(part) for part in expr.fields)})"
        return self._weight(expr.value.numpy())

    def _weight(self, value: np.ndarray) -> str:
        name = f"p{len(self.weights)}"
        self.weights[name] = value
        return f"%{name}"

    def _conv2d(self, call: relax.Call) -> str:
        data, weight = call.args
        attrs = call.attrs
        channels, _, *kernel = (int(n) for n in weight.ty.shape)
        return _applied(
            "nn.conv2d",
            [self._argument(data), self._argument(weight)],
            strides=_ints(attrs.strides),
            padding=_ints(attrs.padding),
            dilation=_ints(attrs.dilation),
            groups=int(attrs.groups),
            channels=channels,
            kernel_size=kernel,
        )

    def _batch_norm(self, call: relax.Call) -> str:
        args = [self._argument(arg) for arg in call.args]
        return _applied(
            "nn.batch_norm",
            args,
            axis=int(call.attrs.axis),
            epsilon=float(call.attrs.epsilon),
        )

    def _clip(self, call: relax.Call) -> str:
        low, high = (float(bound.value) for bound in call.args[1:])
        return _applied("clip", [self._argument(call.args[0])], a_min=low, a_max=high)

    def _pool(self, call: relax.Call) -> str:
        attrs = call.attrs
        named = {
            "pool_size": _ints(attrs.pool_size),
            "strides": _ints(attrs.strides),
            "padding": _ints(attrs.padding),
            "ceil_mode": bool(attrs.ceil_mode),
            "layout": str(attrs.layout),
        }
        if "avg" in call.op.name:
            named["count_include_pad"] = bool(attrs.count_include_pad)
        name = call.op.name.removeprefix("relax.")
        return _applied(name, [self._argument(call.args[0])], **named)

    def _dense(self, call: relax.Call) -> str:
        """A product with known weights, which Relay has transposed."""
        data, weight = call.args
        transposed = np.ascontiguousarray(weight.value.numpy().T)
        args = [self._argument(data), self._weight(transposed)]
        return _applied("nn.dense", args, units=transposed.shape[0])

    def _reshape(self, call: relax.Call) -> str:
        shape = [int(n) for n in call.args[1].values]
        return _applied("reshape", [self._argument(call.args[0])], newshape=shape)

    def _with_axis(self, call: relax.Call) -> str:
        name = {"relax.concat": "concatenate", "relax.nn.softmax": "nn.softmax"}[call.op.name]
        return _applied(name, [self._argument(call.args[0])], axis=int(call.attrs.axis))


_CALLS: dict[str, Callable[[_Writer, relax.Call], str]] = {
    "relax.clip": _Writer._clip,
    "relax.concat": _Writer._with_axis,
    "relax.matmul": _Writer._dense,
    "relax.nn.avg_pool2d": _Writer._pool,
    "relax.nn.batch_norm": _Writer._batch_norm,
    "relax.nn.conv2d": _Writer._conv2d,
    "relax.nn.max_pool2d": _Writer._pool,
    "relax.nn.softmax": _Writer._with_axis,
    "relax.reshape": _Writer._reshape,
}


def _applied(name: str, args: Sequence[str], **attrs: Any) -> str:
    return f"{name}({', '.join([*args, *(f'{key}={value!r}' for key, value in attrs.items())])})"


def _ints(values: Any) -> list[int]:
    return [int(n) for n in values]


def _type(shape: Sequence[int], dtype: Any) -> str:
    return f"Tensor[({', '.join(map(str, shape))}), {dtype}]"
