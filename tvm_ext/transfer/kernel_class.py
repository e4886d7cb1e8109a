"""Kernel classes: kernels of a model with the same sequence of operators, whatever their shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import relax

from tvm_ext import planner
from tvm_ext.errors import TuningError
from tvm_ext.grouped_model import Model, grouped
from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df
from tvm_ext.schedules.workload import ViewWorkload
from tvm_ext.tables import render, short_op
from tvm_ext.target import CpuTarget, resolve
from tvm_ext.transfer.kernel_class_ops import Ops, class_ops

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """One kernel of a model, as often as it occurs.

    Attributes
    ----------
    letter : str
        Of its class.
    ops : tuple of str
        Its operators, in order. Convolutions of several groups have names of their own, since
        their loops differ.
    layers : tuple of str
        The layers that use it.
    input_shape, weight_shape, strides : tuple of int
        Empty where it has none.
    share : float
        Of the whole model's untuned time, for all uses together.
    """

    letter: str
    ops: Ops
    layers: tuple[str, ...]
    input_shape: Shape
    weight_shape: Shape
    strides: Shape
    share: float


@dataclass(frozen=True)
class KernelClasses:
    """The kernels of a model, in order of first appearance (Gibson and Cano, table 6.1).

    Attributes
    ----------
    kernels : tuple of Kernel
    basis : str
        Where the shares come from: ``"measured"`` or ``"estimated"``.
    """

    kernels: tuple[Kernel, ...]
    basis: str

    @property
    def letters(self) -> dict[Ops, str]:
        """The letter of each class, in order of first appearance."""
        return {kernel.ops: kernel.letter for kernel in self.kernels}

    @property
    def counts(self) -> dict[Ops, int]:
        """The number of kernels of each class; W_c in equation 6.1."""
        found: dict[Ops, int] = {}
        for kernel in self.kernels:
            found[kernel.ops] = found.get(kernel.ops, 0) + 1
        return found

    @property
    def shares(self) -> dict[Ops, float]:
        """Each class's share of the untuned time; P_c in equation 6.1."""
        found: dict[Ops, float] = {}
        for kernel in self.kernels:
            found[kernel.ops] = found.get(kernel.ops, 0.0) + kernel.share
        return found

    def row(self) -> str:
        """Letter, number of kernels and share of each class, as ``A (4, 17%); B (1, 0%)``."""
        counts, shares = self.counts, self.shares
        named = sorted(self.letters.items(), key=lambda item: (len(item[1]), item[1]))
        return "; ".join(f"{letter} ({counts[ops]}, {shares[ops]:.0%})" for ops, letter in named)

    def table(self) -> Any:
        """One row a kernel, as a `rich` table."""
        from rich.table import Table

        table = Table(title=f"kernels; share of untuned time {self.basis}", title_justify="left")
        for name in ("kernel", "class", "operators", "input shape", "weight shape", "strides"):
            table.add_column(name, overflow="fold")
        for name in ("uses", "share"):
            table.add_column(name, justify="right")
        for number, kernel in enumerate(self.kernels, 1):
            table.add_row(
                str(number),
                kernel.letter,
                " ".join(short_op(op) for op in kernel.ops),
                *(_shown(s) for s in (kernel.input_shape, kernel.weight_shape, kernel.strides)),
                str(len(kernel.layers)),
                f"{kernel.share:.1%}",
            )
        return table

    def __str__(self) -> str:
        return render(self.table())


def kernel_classes(
    mod: Model,
    target: str | Mapping[str, Any] | CpuTarget | None = None,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    times: Mapping[str, float] | None = None,
    letters: Mapping[Ops, str] | None = None,
) -> KernelClasses:
    """The kernels of a model and their classes.

    Parameters
    ----------
    mod : model
        As `tvm_ext.build` takes it.
    target : str, dict or CpuTarget, optional
        This machine without.
    input_shapes : dict, optional
    times : dict of str to float, optional
        Measured seconds by layer, all layers; without, the cost model's estimates are used.
    letters : dict, optional
        Letters that classes have already, of another model's `letters`; new ones continue.

    Raises
    ------
    TuningError
        `times` lacks a layer, or has one that isn't a finite time.
    """
    cpu = resolve("native" if target is None else target)
    return classify(grouped(mod, cpu, input_shapes).layers, cpu, times, letters)


def classify(
    layers: Sequence[Layer],
    cpu: CpuTarget,
    times: Mapping[str, float] | None = None,
    letters: Mapping[Ops, str] | None = None,
) -> KernelClasses:
    """The kernel classes of layers; parameters as of `kernel_classes`."""
    known = dict(letters or {})
    seconds = _estimated(layers, cpu) if times is None else _checked(times, layers)
    total = sum(seconds.values()) or 1.0
    kernels = []
    for group in unique_kernels(layers):
        first = group[0]
        ops = class_ops(first)
        if ops not in known:
            known[ops] = _next_letter(known.values())
        share = sum(seconds[layer.name] for layer in group) / total
        kernels.append(
            Kernel(
                known[ops], ops, tuple(layer.name for layer in group), _input_shape(first),
                first.weights[0].shape if first.weights else (), _strides(first), share,
            )
        )  # fmt: skip
    return KernelClasses(tuple(kernels), "estimated" if times is None else "measured")


def unique_kernels(layers: Sequence[Layer]) -> list[list[Layer]]:
    """Layers that compute something, those of one kernel together, in order of appearance."""
    groups: dict[Any, list[Layer]] = {}
    for layer in layers:
        if not isinstance(layer.workload, ViewWorkload):
            workload = layer.workload
            if getattr(workload, "sparsity", None) is not None:
                workload = replace(workload, sparsity=None)
            groups.setdefault((layer.ops, workload), []).append(layer)
    return list(groups.values())


def _estimated(layers: Sequence[Layer], cpu: CpuTarget) -> dict[str, float]:
    return {p.name: p.estimate_us * 1e-6 for p in planner.choose(list(layers), cpu)}


def _checked(times: Mapping[str, float], layers: Sequence[Layer]) -> dict[str, float]:
    found = {}
    for layer in layers:
        if isinstance(layer.workload, ViewWorkload):
            continue
        seconds = times.get(layer.name)
        if seconds is None:
            raise TuningError(f"no time for layer {layer.name!r}; there are {sorted(times)}")
        if not 0 <= seconds < float("inf"):
            raise TuningError(f"layer {layer.name}: time {seconds} s; allowed: finite, from 0 on")
        found[layer.name] = float(seconds)
    return found


def _next_letter(taken: Any) -> str:
    used, number = set(taken), 0
    while (letter := _letter(number)) in used:
        number += 1
    return letter


def _letter(number: int) -> str:
    """A to Z, then AA, AB, ..."""
    letter = chr(ord("A") + number % 26)
    return letter if number < 26 else _letter(number // 26 - 1) + letter


def _input_shape(layer: Layer) -> Shape:
    values = layer.inputs or layer.arguments
    tensors = [v for v in values if isinstance(v.ty, relax.TensorType)]
    return df.shape_of(tensors[0]) if tensors else ()


def _strides(layer: Layer) -> Shape:
    for _, expr in df.bindings(layer.function):
        strides = getattr(expr.attrs, "strides", None) if df.op_name(expr) else None
        if strides is not None:
            return tuple(int(s) for s in strides)
    return ()


def _shown(shape: Shape) -> str:
    return "x".join(str(d) for d in shape) or "-"
