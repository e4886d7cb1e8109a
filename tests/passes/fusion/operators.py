"""Relax operators beside what NumPy computes for them, on small shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import op

from tvm_ext.passes import dataflow as df


@dataclass(frozen=True)
class Case:
    """An operator: how Relax and NumPy write it, and the shapes of its inputs."""

    name: str
    relax: Callable[..., Any]
    numpy: Callable[..., np.ndarray]
    shapes: tuple[tuple[int, ...], ...]

    def call(self) -> relax.Call:
        """The normalised Relax call."""
        params = [
            relax.Var(f"x{i}", relax.TensorType(s, "float32")) for i, s in enumerate(self.shapes)
        ]
        builder = relax.BlockBuilder()
        with builder.function("main", params):
            with builder.dataflow():
                out = builder.emit_output(builder.emit(self.relax(*params)))
            builder.emit_func_output(out)
        return next(e for _, e in df.bindings(builder.get()["main"]) if isinstance(e, relax.Call))


_UNARY: dict[str, Callable[..., np.ndarray]] = {
    "abs": np.abs, "acos": np.negative, "asinh": np.arcsinh, "atan": np.arctan, "ceil": np.ceil,
    "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "floor": np.floor, "log": np.log,
    "negative": np.negative, "round": np.round, "rsqrt": lambda x: x**-0.5,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sign": lambda x: np.sign(x - 2), "sin": np.sin,
    "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square, "tan": np.tan, "tanh": np.tanh,
    "trunc": np.trunc, "isnan": np.negative, "isinf": np.negative, "isfinite": np.negative,
    "erf": np.tanh,
}  # fmt: skip
_UNARY_NN: dict[str, Callable[..., np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0), "gelu": lambda x: x + np.tanh(x),
    "gelu_tanh": lambda x: x + np.tanh(x), "silu": lambda x: x / (1 + np.exp(-x)),
    "selu": lambda x: np.where(x > 0, x, np.expm1(x)), "softplus": lambda x: np.log1p(np.exp(x)),
    "leakyrelu": lambda x: np.where(x > 0, x, 0.01 * x),
}  # fmt: skip
_BINARY: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "divide": np.divide, "maximum": np.add, "minimum": np.add,
    "multiply": np.multiply, "power": np.power, "subtract": np.subtract, "greater": np.subtract,
    "equal": np.subtract, "log_add_exp": np.logaddexp, "atan2": np.arctan2,
}  # fmt: skip
"""Where NumPy's own function is flat or a step (maximum, equal), one that shows its arguments."""


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _pool(x: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 3))
    return windows.max((-1, -2))[:, :, ::2, ::2]


def _conv(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,kcij->nkhw", windows, w)


CASES = (
    *(Case(n, getattr(op, n), f, ((2, 3),)) for n, f in _UNARY.items()),
    *(Case(f"nn.{n}", getattr(op.nn, n), f, ((2, 3),)) for n, f in _UNARY_NN.items()),
    *(Case(n, getattr(op, n), f, ((2, 3), (2, 3))) for n, f in _BINARY.items()),
    Case("add of a bias", op.add, np.add, ((2, 3, 4), (4,))),
    Case("multiply by a scalar", op.multiply, np.multiply, ((2, 3), ())),
    Case("clip", lambda x: op.clip(x, -1, 6), lambda x: 2 * x, ((2, 3),)),
    Case("astype", lambda x: op.astype(x, "int32"), lambda x: 2 * x, ((2, 3),)),
    Case("concat", lambda a, b: op.concat([a, b], 1), lambda a, b: np.concatenate([a, b], 1),
         ((2, 3), (2, 4))),
    Case("strided_slice", lambda x: op.strided_slice(x, [1], [1], [6], [2]),
         lambda x: x[:, 1:6:2], ((2, 6),)),
    Case("nn.pad", lambda x: op.nn.pad(x, [0, 0, 1, 1]), lambda x: np.pad(x, [(0, 0), (1, 1)]),
         ((2, 6),)),
    Case("tril", op.tril, np.tril, ((4, 4),)),
    Case("reshape", lambda x: op.reshape(x, (3, 4)), lambda x: x.reshape(3, 4), ((2, 6),)),
    Case("flatten", op.flatten, np.ravel, ((2, 6),)),
    Case("squeeze", lambda x: op.squeeze(x, [1]), lambda x: x.squeeze(1), ((2, 1, 6),)),
    Case("expand_dims", lambda x: op.expand_dims(x, [1]), lambda x: x[:, None], ((2, 6),)),
    Case("permute_dims", lambda x: op.permute_dims(x, [0, 2, 1]),
         lambda x: x.transpose(0, 2, 1), ((2, 3, 4),)),
    Case("flip", lambda x: op.flip(x, 1), lambda x: x[:, ::-1], ((2, 3),)),
    Case("broadcast_to", lambda x: op.broadcast_to(x, (4, 3)),
         lambda x: np.broadcast_to(x, (4, 3)), ((1, 3),)),
    Case("tile", lambda x: op.tile(x, (2, 1)), lambda x: np.tile(x, (2, 1)), ((2, 3),)),
    Case("repeat", lambda x: op.repeat(x, 2, 1), lambda x: np.repeat(x, 2, 1), ((2, 3),)),
    Case("image.resize2d, nearest",
         lambda x: op.image.resize2d(x, relax.ShapeExpr((4, 4)), method="nearest_neighbor",
                                     coordinate_transformation_mode="asymmetric",
                                     rounding_method="floor"),
         lambda x: x.repeat(2, 2).repeat(2, 3), ((1, 1, 2, 2),)),
    Case("matmul", op.matmul, np.matmul, ((2, 3), (3, 4))),
    Case("outer", op.outer, np.outer, ((3,), (4,))),
    Case("mean", lambda x: op.mean(x, 1), lambda x: x.mean(1), ((2, 3),)),
    Case("sum", op.sum, lambda x: np.asarray(x.sum()), ((2, 3),)),
    Case("max", lambda x: op.max(x, 1), lambda x: x.max(1), ((2, 3),)),
    Case("prod", lambda x: op.prod(x, 1), lambda x: x.prod(1), ((2, 3),)),
    Case("variance", lambda x: op.variance(x, 1), lambda x: x.var(1), ((2, 3),)),
    Case("cumsum", lambda x: op.cumsum(x, 1), lambda x: x.cumsum(1), ((2, 3),)),
    Case("nn.softmax", op.nn.softmax, _softmax, ((2, 4),)),
    Case("nn.max_pool2d", lambda x: op.nn.max_pool2d(x, (2, 2), (2, 2)), _pool, ((1, 2, 4, 4),)),
    Case("nn.conv2d", op.nn.conv2d, _conv, ((1, 2, 5, 5), (3, 2, 3, 3))),
    Case("nn.conv2d, 1x1", op.nn.conv2d, _conv, ((1, 2, 3, 3), (3, 2, 1, 1))),
    Case("nn.conv2d, one channel and tap", op.nn.conv2d, _conv, ((1, 1, 3, 3), (1, 1, 1, 1))),
)  # fmt: skip
