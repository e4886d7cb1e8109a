"""Random graphs over Relax's operators, each value beside what NumPy computes for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from hypothesis import strategies as st
from tvm import relax
from tvm.relax import op

from tests.passes.relax_models import const

_MOST_ELEMENTS = 4096
# Values shrink and grow by these factors, so that long chains stay finite.
_UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "relu": (op.nn.relu, lambda x: np.maximum(x, 0)),
    "tanh": (op.tanh, np.tanh),
    "negative": (op.negative, np.negative),
    "abs": (op.abs, np.abs),
    "sigmoid": (op.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
}
_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., np.ndarray]]] = {
    "add": (op.add, np.add),
    "subtract": (op.subtract, np.subtract),
    "maximum": (op.maximum, np.maximum),
    "minimum": (op.minimum, np.minimum),
}


@dataclass
class Graph:
    """A graph while it is drawn: Relax variables and their float64 values.

    Attributes
    ----------
    inputs : dict of str to ndarray
    values : list of (Var, ndarray)
        Inputs first, then in the order in which they were made.
    """

    builder: relax.BlockBuilder
    rng: np.random.Generator
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    values: list[tuple[Any, np.ndarray]] = field(default_factory=list)

    def emit(self, expr: Any, value: np.ndarray) -> None:
        """Add a value, unless it got too large to go on with."""
        if 0 < value.size <= _MOST_ELEMENTS:
            self.values.append((self.builder.emit(expr), np.asarray(value, "float64")))

    def weight(self, *shape: int) -> np.ndarray:
        """A constant."""
        return (self.rng.standard_normal(shape) / np.sqrt(shape[-1])).astype("float32")


@st.composite
def graphs(draw: st.DrawFn, most: int = 12) -> tuple[tvm.IRModule, dict[str, np.ndarray], list]:
    """A module, its inputs, and what NumPy says that it returns.

    Up to `most` operators read any earlier values (diamonds, values read several times), broadcast,
    split into tuples, move elements, reduce, multiply matrices and convolve.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = draw(
        st.lists(
            st.sampled_from([(2, 8, 6, 5), (1, 4, 6, 6), (4, 6), (3, 4, 8), (16,), (1, 6, 24)]),
            min_size=1,
            max_size=3,
        )
    )
    inputs = {f"x{i}": rng.standard_normal(s).astype("float32") for i, s in enumerate(shapes)}
    params = [relax.Var(n, relax.TensorType(x.shape, "float32")) for n, x in inputs.items()]
    builder = relax.BlockBuilder()
    graph = Graph(builder, rng, inputs)
    graph.values = [(p, x.astype("float64")) for p, x in zip(params, inputs.values(), strict=True)]
    with builder.function("main", params):
        with builder.dataflow():
            for _ in range(draw(st.integers(1, most))):
                _extend(draw, graph)
            count = draw(st.integers(1, min(3, len(graph.values))))
            results = graph.values[-count:]
            vars_ = [var for var, _ in results]
            output = builder.emit_output(vars_[0] if count == 1 else relax.Tuple(vars_))
        builder.emit_func_output(output)
    return builder.get(), inputs, [value for _, value in results]


def _extend(draw: st.DrawFn, graph: Graph) -> None:
    # Later values more often, so that chains get long.
    at = draw(st.integers(0, len(graph.values) - 1))
    at = max(at, draw(st.integers(0, len(graph.values) - 1)))
    var, x = graph.values[at]
    rank = x.ndim
    kinds = ["unary", "binary", "constant", "reshape", "permute", "reduce"]
    kinds += ["slice", "split", "concat", "flip"] if max(x.shape, default=1) > 1 else []
    kinds += ["softmax", "dense", "product"] if rank >= 2 else []
    kinds += ["conv", "pool"] if rank == 4 and min(x.shape[2:]) >= 3 else []
    kinds += ["enlarge"] if rank == 4 else []
    _KINDS[draw(st.sampled_from(kinds))](draw, graph, var, x)


def _unary(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    relax_op, numpy_op = _UNARY[draw(st.sampled_from(sorted(_UNARY)))]
    graph.emit(relax_op(var), numpy_op(x))


def _binary(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    def fits(shape: tuple[int, ...]) -> bool:
        try:
            np.broadcast_shapes(shape, x.shape)
        except ValueError:
            return False
        return True

    fitting = [(v, y) for v, y in graph.values if fits(y.shape)]
    other, y = draw(st.sampled_from(fitting))
    relax_op, numpy_op = _BINARY[draw(st.sampled_from(sorted(_BINARY)))]
    graph.emit(relax_op(var, other), numpy_op(x, y))


def _constant(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    shape = tuple(n if draw(st.booleans()) else 1 for n in x.shape)
    value = graph.weight(*shape) if shape else np.float32(0.5)
    graph.emit(op.multiply(var, const(np.asarray(value))), x * value)


def _reshape(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    shape = list(x.shape)
    if len(shape) > 1 and draw(st.booleans()):
        i = draw(st.integers(0, len(shape) - 2))
        shape[i : i + 2] = [shape[i] * shape[i + 1]]
    elif len(shape) < 5 and shape:
        i = draw(st.integers(0, len(shape) - 1))
        divisor = draw(st.sampled_from([d for d in range(1, shape[i] + 1) if shape[i] % d == 0]))
        shape[i : i + 1] = [divisor, shape[i] // divisor]
    graph.emit(op.reshape(var, shape), x.reshape(shape))


def _permute(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    axes = draw(st.permutations(range(x.ndim)))
    graph.emit(op.permute_dims(var, axes), x.transpose(axes))


def _reduce(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    axis = draw(st.integers(0, x.ndim - 1)) if x.ndim else None
    keep = draw(st.booleans())
    graph.emit(op.mean(var, axis, keep), x.mean(axis, keepdims=keep))


def _cut_axis(draw: st.DrawFn, x: np.ndarray) -> int:
    return draw(st.sampled_from([i for i, n in enumerate(x.shape) if n > 1]))


def _slice(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    axis = _cut_axis(draw, x)
    begin = draw(st.integers(0, x.shape[axis] - 1))
    end = draw(st.integers(begin + 1, x.shape[axis]))
    step = draw(st.sampled_from([1, 1, 2]))
    index = (slice(None),) * axis + (slice(begin, end, step),)
    graph.emit(op.strided_slice(var, [axis], [begin], [end], [step]), x[index])


def _split(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    axis = _cut_axis(draw, x)
    at = draw(st.integers(1, x.shape[axis] - 1))
    parts = graph.builder.emit(op.split(var, [at], axis))
    for i, part in enumerate(np.split(x, [at], axis)):
        graph.emit(relax.TupleGetItem(parts, i), part)


def _concat(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    other, y = draw(st.sampled_from([(v, y) for v, y in graph.values if y.shape == x.shape]))
    axis = draw(st.integers(0, x.ndim - 1))
    graph.emit(op.concat([var, other], axis), np.concatenate([x, y], axis))


def _flip(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    axis = _cut_axis(draw, x)
    graph.emit(op.flip(var, axis), np.flip(x, axis))


def _softmax(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    e = np.exp(x - x.max(-1, keepdims=True))
    graph.emit(op.nn.softmax(var), e / e.sum(-1, keepdims=True))


def _dense(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    weight = graph.weight(draw(st.sampled_from([4, 6, 16])), x.shape[-1]).T.copy()
    graph.emit(op.matmul(var, const(weight)), x @ weight)


def _product(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    """With itself transposed, as attention does it."""
    axes = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
    transposed = graph.builder.emit(op.permute_dims(var, axes))
    scaled = x @ x.transpose(axes)
    graph.emit(op.matmul(var, transposed), scaled)


def _conv(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    size = draw(st.sampled_from([1, 3]))
    weight = graph.weight(8, x.shape[1], size, size)
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))
    out = np.einsum("ncyxij,ocij->noyx", windows, weight)
    graph.emit(op.nn.conv2d(var, const(weight)), out)


def _pool(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::2, ::2]
    graph.emit(op.nn.max_pool2d(var, (2, 2), (2, 2)), windows.max((-1, -2)))


def _enlarge(draw: st.DrawFn, graph: Graph, var: Any, x: np.ndarray) -> None:
    """Nearest neighbour, perhaps added to a value of the larger shape."""
    factors = draw(st.sampled_from([(2, 2), (2, 1), (1, 3), (3, 3)]))
    size = (x.shape[2] * factors[0], x.shape[3] * factors[1])
    call = op.image.resize2d(
        var, size, method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )  # fmt: skip
    graph.emit(call, x.repeat(factors[0], axis=2).repeat(factors[1], axis=3))
    if graph.values[-1][1].shape[2:] == size and draw(st.booleans()):
        _binary(draw, graph, *graph.values[-1])


_KINDS: dict[str, Callable[..., None]] = {
    "unary": _unary, "binary": _binary, "constant": _constant, "reshape": _reshape,
    "permute": _permute, "reduce": _reduce, "slice": _slice, "split": _split, "concat": _concat,
    "flip": _flip, "softmax": _softmax, "dense": _dense, "product": _product, "conv": _conv,
    "pool": _pool, "enlarge": _enlarge,
}  # fmt: skip
