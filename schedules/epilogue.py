"""Elementwise expressions that a kernel applies to each result while it is still in a register.

An `Epilogue` is plain, hashable data: a list of scalar steps over the kernel's result, constants
and operands (bias, residual, slope, ...). The same data is the whole of an elementwise kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvm_ext.schedules import hyperbolic as hy
from tvm_ext.schedules import scalar_functions as sf
from tvm_ext.schedules import scalar_math as sm
from tvm_ext.schedules.sharing import share
from tvm_ext.schedules.strided_view import StridedView

# ("value", i): the kernel's result or an earlier step; ("operand", j); ("const", number).
Ref = tuple[str, Any]


@dataclass(frozen=True)
class Operand:
    """A tensor that the epilogue reads.

    Attributes
    ----------
    shape : tuple of int
        In the model's own layout, padded with leading ones to the output's rank; each dimension
        is 1 or the output's, divided by its factor in `repeat`.
    dtype : str
    view : StridedView, optional
        How the output's positions read the tensor, where it isn't stored in that shape.
    size : int
        With a view, the elements of the tensor that it is a view of.
    repeat : tuple of int
        Positions in a row that read one element, along each (spatial) dimension; empty for none.
    """

    shape: tuple[int, ...]
    dtype: str
    view: StridedView | None = None
    size: int = 0
    repeat: tuple[int, ...] = ()

    @property
    def factors(self) -> tuple[int, ...]:
        """`repeat`, written out."""
        return self.repeat or (1,) * len(self.shape)

    @property
    def seen(self) -> tuple[int, ...]:
        """The shape of what the output reads."""
        return tuple(n * f for n, f in zip(self.shape, self.factors, strict=True))

    def place(self, position: Sequence[Any]) -> list[Any]:
        """Where the tensor has what a position of the output reads."""
        dimensions = zip(position, self.shape, self.factors, strict=True)
        return [0 if n == 1 else i // f if f > 1 else i for i, n, f in dimensions]


@dataclass(frozen=True)
class Step:
    """One scalar operation; `op` is a key of `SCALAR_OPS`."""

    op: str
    args: tuple[Ref, ...]
    attrs: tuple[float, ...] = ()
    dtype: str = "float32"


@dataclass(frozen=True)
class Epilogue:
    """Steps in order; the last one is the result. `results` values come before the first step."""

    steps: tuple[Step, ...] = ()
    operands: tuple[Operand, ...] = ()
    results: int = 1

    def evaluate(self, results: Sequence[tirx.Expr], load: Callable[[int], tirx.Expr]) -> tirx.Expr:
        """Build the expression for one element.

        Parameters
        ----------
        results : sequence of Expr
            The kernel's own result, or nothing for an elementwise kernel.
        load : callable
            Gives the element of operand j that belongs to this output element.
        """
        values = list(results)

        def get(ref: Ref, dtype: str) -> tirx.Expr:
            kind, x = ref
            if kind == "value":
                return values[x]
            return load(x) if kind == "operand" else tirx.const(x, dtype)

        for step in self.steps:
            if step.op == "where":
                types = ["bool", step.dtype, step.dtype]
            else:
                # A constant takes the type of what it meets.
                met = [sm.dtype_of(get(ref, "")) for ref in step.args if ref[0] != "const"]
                types = [met[0] if met else step.dtype] * len(step.args)
            args = [get(ref, dtype) for ref, dtype in zip(step.args, types, strict=True)]
            if self._is_mish(step, len(results)):
                values.append(SCALAR_OPS["mish"](args[:1], step))
            else:
                values.append(SCALAR_OPS[step.op](args, step))
        return share(values[-1])

    def _is_mish(self, step: Step, results: int) -> bool:
        """Whether a step is x tanh(softplus(x)), which has a formula with a single exponential."""
        if step.op != "multiply":
            return False
        x, factor = step.args

        def made_by(ref: Ref, op: str) -> Step | None:
            made = ref[0] == "value" and ref[1] >= results
            source = self.steps[ref[1] - results] if made else None
            return source if source is not None and source.op == op else None

        tanh = made_by(factor, "tanh")
        softplus = made_by(tanh.args[0], "softplus") if tanh is not None else None
        return softplus is not None and softplus.args == (x,)

    @property
    def flops(self) -> int:
        """Floating-point operations an element, transcendental functions at their real cost."""
        return sum(_FLOPS.get(step.op, 1) for step in self.steps)


Scalar = Callable[[list[tirx.Expr], Step], tirx.Expr]


def _plain(function: Callable[..., tirx.Expr]) -> Scalar:
    """A function of the arguments alone, in their own precision."""
    return lambda args, step: function(*args)


def _unary(function: Callable[..., tirx.Expr]) -> Scalar:
    """A transcendental function: half precision is computed in float32."""
    return lambda args, step: sf.in_float32(function)(*args)


def _with_attrs(function: Callable[..., tirx.Expr], *defaults: float) -> Scalar:
    """A function whose further arguments are the step's attributes, or `defaults`."""
    return lambda args, step: sf.in_float32(lambda *x: function(*x, *(step.attrs or defaults)))(
        *args
    )


def _clip(args: list[tirx.Expr], step: Step) -> tirx.Expr:
    low, high = step.attrs
    return sm.clip(args[0], low, high)


SCALAR_OPS: dict[str, Scalar] = {
    "add": lambda a, s: a[0] + a[1],
    "subtract": lambda a, s: a[0] - a[1],
    "multiply": lambda a, s: a[0] * a[1],
    "divide": _plain(sm.divide),
    "floor_divide": _plain(sf.floored_divide),
    "mod": _plain(sf.truncated_mod),
    "floor_mod": _plain(sf.floored_mod),
    "power": _plain(sf.power),
    "maximum": _plain(sm.maximum),
    "minimum": _plain(sm.minimum),
    "negative": _plain(sf.negative),
    "abs": _plain(tirx.abs),
    "sign": _plain(sf.sign),
    "square": lambda a, s: a[0] * a[0],
    "sqrt": _unary(tirx.sqrt),
    "rsqrt": _unary(lambda x: tirx.const(1.0, sm.dtype_of(x)) / tirx.sqrt(x)),
    "floor": _plain(tirx.floor),
    "ceil": _plain(tirx.ceil),
    "round": _plain(sf.nearest),
    "trunc": _plain(tirx.trunc),
    "exp": _unary(sm.gradual_exp),
    "log": _unary(sf.log),
    "sin": _unary(tirx.sin),
    "cos": _unary(tirx.cos),
    "tan": _unary(tirx.tan),
    "asin": _unary(tirx.asin),
    "acos": _unary(tirx.acos),
    "atan": _unary(tirx.atan),
    "sinh": _unary(hy.sinh),
    "cosh": _unary(hy.cosh),
    "asinh": _unary(hy.asinh),
    "acosh": _unary(tirx.acosh),
    "atanh": _unary(hy.atanh),
    "tanh": _unary(sm.tanh),
    "sigmoid": _unary(sm.sigmoid),
    "erf": _unary(sm.erf),
    "relu": _plain(sm.relu),
    "relu6": lambda a, s: sm.clip(a[0], 0.0, 6.0),
    "clip": _clip,
    "leakyrelu": lambda a, s: sm.leaky_relu(a[0], tirx.const(s.attrs[0], s.dtype)),
    "prelu": _plain(sm.leaky_relu),
    "elu": _with_attrs(sf.elu, 1.0),
    "celu": _with_attrs(sf.celu, 1.0),
    "selu": lambda a, s: (
        tirx.const(_SELU[1], s.dtype) * sf.in_float32(lambda x: sf.elu(x, _SELU[0]))(a[0])
    ),
    "silu": _unary(lambda x: x * sm.sigmoid(x)),
    "mish": _unary(sf.mish),
    "softplus": _unary(sf.softplus),
    "softsign": lambda a, s: a[0] / (tirx.const(1.0, s.dtype) + tirx.abs(a[0])),
    "hardsigmoid": _with_attrs(sf.hard_sigmoid, 0.2, 0.5),
    "hardswish": lambda a, s: a[0] * sf.hard_sigmoid(a[0], 1.0 / 6.0, 0.5),
    "gelu": _unary(sm.gelu),
    "gelu_tanh": _unary(sm.gelu_tanh),
    "equal": _plain(sf.equal),
    "not_equal": _plain(sf.not_equal),
    "less": lambda a, s: a[0] < a[1],
    "less_equal": lambda a, s: a[0] <= a[1],
    "greater": lambda a, s: a[0] > a[1],
    "greater_equal": lambda a, s: a[0] >= a[1],
    "isnan": _plain(tirx.isnan),
    "isinf": _plain(sf.is_infinite),
    "isfinite": _plain(sf.is_finite),
    "logical_and": _plain(tirx.And),
    "logical_or": _plain(tirx.Or),
    "logical_xor": _plain(sf.logical_xor),
    "logical_not": _plain(tirx.Not),
    "bitwise_and": lambda a, s: a[0] & a[1],
    "bitwise_or": lambda a, s: a[0] | a[1],
    "bitwise_xor": lambda a, s: a[0] ^ a[1],
    "bitwise_not": lambda a, s: ~a[0],
    "left_shift": _plain(sf.left_shift),
    "right_shift": _plain(sf.right_shift),
    "where": _plain(tirx.Select),
    "cast": lambda a, s: sf.cast(a[0], s.dtype),
    # Of a number that is known to be in the type's range.
    "narrow": lambda a, s: a[0].astype(s.dtype),
}

_SELU = (1.67326319217681884765625, 1.05070102214813232421875)  # alpha, gamma of ONNX Selu

# What the vector code executes, division counted as 4, a libm call for each lane as 60.
_FLOPS = {
    "exp": 22, "tanh": 26, "sigmoid": 24, "erf": 30, "silu": 25, "gelu": 34, "gelu_tanh": 32,
    "divide": 4, "sqrt": 6, "rsqrt": 10, "clip": 2, "relu6": 2, "leakyrelu": 3, "prelu": 3,
    "log": 28, "softplus": 40, "mish": 28, "elu": 28, "celu": 32, "selu": 29, "sinh": 36,
    "cosh": 38, "asinh": 70, "hardsigmoid": 3, "hardswish": 4, "softsign": 6, "sign": 3,
    "power": 60, "mod": 60, "floor_mod": 60, "sin": 60, "cos": 60, "tan": 120, "asin": 60,
    "acos": 60, "atan": 60, "acosh": 60, "atanh": 54,
}  # fmt: skip
