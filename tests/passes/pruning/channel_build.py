"""Networks of named layers, and the same without some of the filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import op

from tests.passes.relax_models import array, const, module
from tvm_ext.passes.pruning import ChannelPrune

Members = list[tuple[str, Sequence[int]]]


class Weights:
    """Seeded arrays by name, made when they are asked for first; layers' filters come first."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def __call__(self, name: str, *shape: int) -> Any:
        """A constant."""
        if name not in self.arrays:
            self.arrays[name] = array(sum(map(ord, name)), *shape)
        return const(self.arrays[name])


@dataclass(frozen=True)
class Network:
    """A model, and which filters go together.

    Attributes
    ----------
    name : str
    body : callable
        ``body(build, x)``.
    sets : list of (list of (str, indices), int)
        Layers with the filters that are tied one to one, and how many of them go at density 0.5.
    shape : tuple of int
        Of the input.
    """

    name: str
    body: Callable[[Build, Any], Any]
    sets: list[tuple[Members, int]]
    shape: tuple[int, ...] = (1, 3, 6, 6)

    def module(self, weights: Weights) -> Any:
        """The model with these weights."""
        return module({"x": self.shape}, lambda emit, x: self.body(Build(emit, weights), x))

    def zeroed(self, weights: Weights, norm: int = 1) -> Weights:
        """The weights without the filters, biases and shifts of the smallest norms."""
        new = Weights()
        new.arrays = {name: a.copy() for name, a in weights.arrays.items()}
        for members, count in self.sets:
            norms: np.ndarray = sum(_norms(weights.arrays[n], norm)[list(i)] for n, i in members)
            worst = np.argsort(norms)[:count]
            for name, indices in members:
                gone = np.array(indices)[worst]
                for key in (f"{name}.bias", f"{name}.beta", f"{name}.mean"):
                    if key in new.arrays:
                        new.arrays[key].reshape(-1)[gone] = 0
                _filters(new.arrays[name])[gone] = 0
        return new


def _filters(weights: np.ndarray) -> np.ndarray:
    return weights.T if weights.ndim == 2 else weights


def _norms(weights: np.ndarray, norm: int) -> np.ndarray:
    flat = _filters(weights).astype("float64").reshape(len(_filters(weights)), -1)
    return (np.abs(flat) ** norm).sum(1) ** (1 / norm)


class Build:
    """Layers by name, whose weights have their names too."""

    def __init__(self, emit: Callable[..., Any], weights: Weights) -> None:
        self.emit, self.weights = emit, weights

    def conv(
        self, name: str, x: Any, out: int, size: int = 1, bias: bool = True, **options: Any
    ) -> Any:
        """A convolution of any rank, padded to keep its input's size, with a bias."""
        shape = [int(n) for n in x.ty.shape.values]
        rank, groups = len(shape) - 2, options.get("groups", 1)
        weights = self.weights(name, out, shape[1] // groups, *[size] * rank)
        call = getattr(op.nn, f"conv{rank}d")(x, weights, padding=[size // 2] * rank, **options)
        y = self.emit(call, name)
        if not bias:
            return y
        return self.emit(op.add(y, self.weights(f"{name}.bias", 1, out, *[1] * rank)))

    def dense(self, name: str, x: Any, out: int) -> Any:
        """x @ W + b."""
        y = self.emit(op.matmul(x, self.weights(name, int(x.ty.shape.values[-1]), out)), name)
        return self.emit(op.add(y, self.weights(f"{name}.bias", out)))

    def norm(self, name: str, x: Any) -> Any:
        """A batch norm behind the layer `name`."""
        channels = int(x.ty.shape.values[1])
        ones = const(np.ones(channels, "float32"))
        scale, shift, mean = (
            self.weights(f"{name}.{k}", channels) for k in ("gamma", "beta", "mean")
        )
        y = self.emit(op.nn.batch_norm(x, scale, shift, mean, ones, axis=1, training=False))
        return self.emit(relax.TupleGetItem(y, 0))

    def relu(self, x: Any) -> Any:
        return self.emit(op.nn.relu(x))

    def head(self, x: Any) -> Any:
        """The mean over positions, and a classifier."""
        return self.dense("head", self.emit(op.mean(x, [2, 3])), 5)

    def concat(self, *parts: Any) -> Any:
        return self.emit(op.concat(list(parts), 1))

    def shuffle(self, x: Any, groups: int) -> Any:
        n, c, *sizes = (int(d) for d in x.ty.shape.values)
        y = self.emit(op.reshape(x, (n, groups, c // groups, *sizes)))
        y = self.emit(op.permute_dims(y, [0, 2, 1, 3, 4]))
        return self.emit(op.reshape(y, (n, c, *sizes)))

    def halves(self, x: Any) -> tuple[Any, Any]:
        parts = self.emit(op.split(x, 2, 1))
        return tuple(self.emit(relax.TupleGetItem(parts, i)) for i in (0, 1))


def pruned(body, shape=(1, 3, 6, 6), **options):
    """A network at density 0.5 without rounding, what was done, and the arrays of its weights."""
    weights = Weights()
    network = Network("", body, [], shape)
    prune = ChannelPrune(**{"density": 0.5, "multiple": 1, "exclude": (), **options})
    mod = network.module(weights)
    return prune(mod), prune.report, mod
