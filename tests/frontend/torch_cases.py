"""PyTorch modules through `tvm_ext.build`, with torch's own eager result as the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm_ext
from tests.models import RTOL

torch = pytest.importorskip("torch")


def export(module: Any, *inputs: Any, **options: Any) -> Any:
    """Return the exported program of a module in evaluation mode."""
    return torch.export.export(module.eval(), inputs, **options)


def leaves(results: Any) -> list[np.ndarray]:
    """Return all tensors of a module's result, in order, as arrays."""
    return [t.detach().numpy() for t in torch.utils._pytree.tree_leaves(results)]


def run(exe: tvm_ext.Executable, *inputs: Any) -> list[np.ndarray]:
    """Call an executable on tensors; always return a list."""
    got = exe([x.numpy() for x in inputs])
    return got if isinstance(got, list) else [got]


def compare(got: np.ndarray, wanted: np.ndarray) -> None:
    """Check shape, dtype, where values aren't finite, and the error over the largest magnitude."""
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted)
        return
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(got[~finite], wanted[~finite])
    scale = np.abs(wanted[finite]).max(initial=0)
    assert np.abs(got[finite] - wanted[finite]).max(initial=0) <= RTOL * scale


def check(module: Any, *inputs: Any) -> tvm_ext.Executable:
    """Export, build, run and compare a module; return what was built."""
    exe = tvm_ext.build(export(module, *inputs))
    results = leaves(module(*inputs))
    for got, wanted in zip(run(exe, *inputs), results, strict=True):
        compare(got, wanted)
    return exe


def operators(exe: tvm_ext.Executable, algorithm: str | None = None) -> list[str]:
    """Return the operators of each layer (that an algorithm computes), fused ones too."""
    return [
        " ".join(op.removeprefix("nn.") for op in layer.ops)
        for layer in exe.plan
        if algorithm in (None, layer.algorithm)
    ]


def normal(*shape: int, seed: int = 0) -> Any:
    """Return a tensor of seeded normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class _All(torch.nn.Module):
    """Every case of a file in one module, so that exporting and compiling happen once."""

    def __init__(self, cases: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]) -> None:
        super().__init__()
        self.cases = cases
        self.parts = torch.nn.ModuleList(
            f for f, _ in cases.values() if isinstance(f, torch.nn.Module)
        )

    def forward(self, inputs: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
        return {name: f(*inputs[name]) for name, (f, _) in self.cases.items()}


class Cases:
    """Functions and modules with their inputs, built together at the first check.

    A case is ``name: (function, input, ...)``.
    """

    def __init__(self, cases: dict[str, tuple[Any, ...]]) -> None:
        # Torch takes two inputs that are the same tensor for one.
        self.cases = {
            name: (f, torch.utils._pytree.tree_map(torch.clone, tuple(inputs)))
            for name, (f, *inputs) in cases.items()
        }
        self.results: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        self.error: Exception | None = None

    def check(self, name: str) -> None:
        """Compare the results of one case."""
        if self.error is not None:
            raise self.error
        if not self.results:
            try:
                self._run()
            # Every test of the file fails with what went wrong in one of them, and soon.
            except Exception as err:
                self.error = err
                raise
        for got, wanted in self.results[name]:
            compare(got, wanted)

    def _run(self) -> None:
        module = _All(self.cases)
        inputs = {name: xs for name, (_, xs) in self.cases.items()}
        exe = tvm_ext.build(export(module, inputs))
        with torch.no_grad():
            wanted = {name: leaves(result) for name, result in module(inputs).items()}
        flat = torch.utils._pytree.tree_leaves(inputs)
        got = iter(run(exe, *flat))
        self.results = {name: [(next(got), w) for w in ws] for name, ws in wanted.items()}
