"""Run small kernels that a test writes itself: the harness for the parts kernels are made of.

All the snippets of one call are compiled as one module, which costs little more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tests.schedules.kernels import HOST
from tvm_ext.schedules import emit
from tvm_ext.schedules.sharing import share

V = HOST.lanes


@dataclass(frozen=True)
class Snippet:
    """`body` gets one buffer for each input and then the output's."""

    body: Callable[..., None]
    inputs: Sequence[np.ndarray]
    shape: tuple[int, ...]
    dtype: str = "float32"
    before: Any = field(default=np.nan)  # what the output holds before the kernel runs

    def function(self, name: str) -> tirx.PrimFunc:
        def whole() -> None:
            buffers = [
                emit.argument(f"in{i}", x.shape, str(x.dtype)) for i, x in enumerate(self.inputs)
            ]
            self.body(*buffers, emit.argument("out", self.shape, self.dtype))

        return emit.build(whole).with_attr("global_symbol", name)


def run_snippets(snippets: Mapping[Any, Snippet]) -> dict[Any, np.ndarray]:
    """The output of each snippet."""
    functions = {f"snippet{i}": s.function(f"snippet{i}") for i, s in enumerate(snippets.values())}
    module = tvm.compile(tvm.IRModule(functions), target=HOST.tvm).mod
    results = {}
    for i, (key, snippet) in enumerate(snippets.items()):
        before = snippet.before if snippet.dtype.startswith("float") else 0
        out = tvm.runtime.tensor(np.full(snippet.shape, before, snippet.dtype))
        module[f"snippet{i}"](*(tvm.runtime.tensor(x) for x in snippet.inputs), out)
        results[key] = out.numpy()
    return results


def run_snippet(body: Callable[..., None], *inputs: np.ndarray, **fields: Any) -> np.ndarray:
    """The output of one snippet; `fields` are its `shape`, and what else differs."""
    return run_snippets({"only": Snippet(body, inputs, **fields)})["only"]


def map_snippet(
    function: Callable[..., tirx.Expr], *inputs: np.ndarray, dtype: str = "float32"
) -> Snippet:
    """A scalar function on vectors of `V` elements, as elementwise kernels call it."""
    count = -(-inputs[0].size // V) * V
    padded = [np.resize(x, count) for x in inputs]

    def body(*buffers: Any) -> None:
        *sources, out = buffers
        with T.serial(0, count // V) as i, T.vectorized(0, V) as lane:
            at = i * V + lane
            T.buffer_store(out, share(function(*(x[at] for x in sources))), [at])

    return Snippet(body, padded, (count,), dtype)


def evaluate(
    functions: Mapping[Any, Callable[..., tirx.Expr]], *inputs: np.ndarray, dtype: str = "float32"
) -> dict[Any, np.ndarray]:
    """What each scalar function gives for one-dimensional `inputs`."""
    snippets = {key: map_snippet(f, *inputs, dtype=dtype) for key, f in functions.items()}
    return {key: out[: inputs[0].size] for key, out in run_snippets(snippets).items()}


def ulps(actual: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance from the float64 value `exact` in units of the last place of float32."""
    with np.errstate(over="ignore"):
        unit = np.spacing(np.abs(exact).astype("float32")).astype("float64")
    return np.abs(actual.astype("float64") - exact) / unit
