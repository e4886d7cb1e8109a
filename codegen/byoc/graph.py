"""Reading a Relax function as quantised tensors, constants and the operators between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df

INTEGERS = ("int8", "uint8")
_AXES = {
    "relax.permute_dims",
    "relax.reshape",
    "relax.expand_dims",
    "relax.squeeze",
    "relax.flatten",
}


def has_integers(func: relax.Function) -> bool:
    """Whether an operator of a function reads or makes 8-bit integers."""
    return any(
        isinstance(tensor.ty, relax.TensorType) and df.dtype_of(tensor) in INTEGERS
        for var, value in df.bindings(func)
        if df.op_name(value)
        for tensor in (var, *df.tensors(value))
    )


class Refused(Exception):
    """An operator that stays on the CPU; the message is the reason."""


@dataclass(frozen=True)
class Quantized:
    """An 8-bit activation, seen as int8.

    Attributes
    ----------
    var : Var
    name : str
        Unique in the function.
    shape : tuple of int
    unsigned : bool
        It is uint8; the zero point here is that of the values less 128.
    zero_point : int
    scale : float or None
        None where only integers of it are used, as ``QLinearConv`` does.
    """

    var: Any
    name: str
    shape: tuple[int, ...]
    unsigned: bool
    zero_point: int
    scale: float | None

    @property
    def shift(self) -> int:
        """What the model's values are more than those seen here."""
        return 128 if self.unsigned else 0


@dataclass(frozen=True)
class Weights:
    """Constant integers less their zero point, and a scale for each (broadcast, float32)."""

    values: np.ndarray
    scales: np.ndarray


class Graph:
    """The bindings of one function, by variable.

    Parameters
    ----------
    func : relax.Function
        In straight-line form.
    """

    def __init__(self, func: relax.Function) -> None:
        self.func = func
        self.pairs = df.bindings(func)
        self.order = {var: i for i, (var, _) in enumerate(self.pairs)}
        self._values = dict(self.pairs)
        self._readers = df.uses(func)
        self._names: dict[Any, str] = {}
        self._taken: set[str] = set()

    def value(self, expr: Any) -> Any:
        """What a variable is bound to; other expressions and parameters as they are."""
        while isinstance(expr, relax.Var) and expr in self._values:
            expr = self._values[expr]
        return expr

    def bound(self, var: Any) -> Any:
        """What a variable itself is bound to, perhaps another variable; None for a parameter."""
        return self._values.get(var)

    def op(self, expr: Any) -> str:
        """Name of the operator that computes an expression, empty if none does."""
        return df.op_name(self.value(expr))

    def read_once(self, var: Any) -> bool:
        """Whether exactly one binding reads a variable."""
        return len(self._readers.get(var, ())) == 1

    def readers(self, var: Any) -> list[Any]:
        """The variables that read this one; the function's result is None."""
        return self._readers.get(var, [])

    def name(self, var: Any) -> str:
        """A name for a variable that no other has."""
        if var not in self._names:
            base = name = str(var.name)
            count = 1
            while name in self._taken:
                name, count = f"{base}_{count}", count + 1
            self._taken.add(name)
            self._names[var] = name
        return self._names[var]

    def dequantized(self, expr: Any) -> Quantized | None:
        """The activation whose real value an expression is, None if it is none.

        Raises
        ------
        Refused
            It is one of another integer type, or with a scale a channel.
        """
        return self.dequantized_call(self.value(expr))

    def dequantized_call(self, call: Any) -> Quantized | None:
        """As `dequantized`, of the call itself."""
        if df.op_name(call) != "relax.dequantize" or self.constant(call.args[0]) is not None:
            return None
        return self.activation(call.args[0], call.args[1], call.args[2])

    def activation(self, var: Any, scale: Any, zero_point: Any) -> Quantized:
        """An 8-bit variable with constant scale (None: unknown) and zero point.

        Raises
        ------
        Refused
        """
        dtype = df.dtype_of(var)
        if dtype not in INTEGERS:
            raise Refused(f"activation of type {dtype}; allowed: {', '.join(INTEGERS)}")
        zero = self.constant(zero_point)
        step = None if scale is None else self.constant(scale)
        if zero is None or (scale is not None and step is None):
            raise Refused("its scale or zero point is computed at run time; allowed: constants")
        if zero.size != 1 or (step is not None and step.size != 1):
            raise Refused("an activation with a scale a channel; allowed: one a tensor")
        unsigned = dtype == "uint8"
        return Quantized(
            var, self.name(var), df.shape_of(var), unsigned, int(zero.reshape(())) - 128 * unsigned,
            None if step is None else float(np.float32(step.reshape(()))),
        )  # fmt: skip

    def constant(self, expr: Any) -> np.ndarray | None:
        """The array of a constant, None for anything computed."""
        return df.view_of(self.value(expr))

    def integers(self, expr: Any) -> np.ndarray | None:
        """A constant, perhaps reshaped; None for anything else."""
        call = self.value(expr)
        if df.op_name(call) in _AXES - {"relax.permute_dims"}:
            inner = self.integers(call.args[0])
            return None if inner is None else inner.reshape(df.shape_of(call))
        return self.constant(expr)

    def weights(self, expr: Any) -> Weights | None:
        """Dequantised constants, perhaps reshaped or transposed; None for anything else."""
        call = self.value(expr)
        name = df.op_name(call)
        if name == "relax.dequantize":
            values, scales, zeros = (self.constant(a) for a in call.args)
            if values is None or scales is None or zeros is None:
                return None
            shape = [1] * values.ndim
            if scales.size > 1:
                shape[int(call.attrs.axis)] = -1
            centred = values.astype("int64") - zeros.astype("int64").reshape(
                shape if zeros.size > 1 else [1] * values.ndim
            )
            return Weights(centred, scales.astype("float32").reshape(shape))
        if name not in _AXES:
            return None
        inner = self.weights(call.args[0])
        if inner is None:
            return None
        if name == "relax.permute_dims":
            axes = None if call.attrs.axes is None else [int(a) for a in call.attrs.axes]
            return Weights(np.transpose(inner.values, axes), np.transpose(inner.scales, axes))
        shape = list(df.shape_of(call))
        scales = np.broadcast_to(inner.scales, inner.values.shape)
        return Weights(inner.values.reshape(shape), scales.reshape(shape))

    def real(self, expr: Any) -> np.ndarray | None:
        """The real values of a constant, dequantised or float, as float64; else None."""
        found = self.weights(expr)
        if found is not None:
            return np.asarray(found.values * found.scales.astype("float64"))
        call = self.value(expr)
        if df.op_name(call) in _AXES:
            inner = self.real(call.args[0])
            if inner is None or df.op_name(call) == "relax.permute_dims":
                return None
            return inner.reshape(df.shape_of(call))
        array = self.constant(expr)
        return None if array is None else array.astype("float64")
