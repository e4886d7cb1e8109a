"""The kernels of a model that can be tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tvm_ext.layers import Layer
from tvm_ext.plan import Plan
from tvm_ext.transfer.kernel_class import unique_kernels
from tvm_ext.transfer.tensor_program import LayerProgram, tensor_program
from tvm_ext.transfer.trace_template_stages import Stages
from tvm_ext.transfer.tune_store import workload_key


@dataclass(frozen=True)
class TuneTask:
    """A kernel and the layers that use it.

    Attributes
    ----------
    layers : tuple of str
        Names, in order.
    program : LayerProgram
        Of the first of them.
    default_s : float
        Seconds that all its layers together may take to be as good as the plan to start from.
    """

    layers: tuple[str, ...]
    program: LayerProgram
    default_s: float

    @property
    def name(self) -> str:
        """The first layer's name."""
        return self.layers[0]

    @cached_property
    def key(self) -> str:
        """By what a store knows its function."""
        return workload_key(self.program.workload.function)

    @cached_property
    def stages(self) -> Stages:
        """The blocks of its function."""
        return Stages.of(self.program.workload.function)

    @property
    def work(self) -> int:
        """Iterations of its anchor."""
        return prod(self.stages.extents)

    def gain(self, seconds: float) -> float:
        """Seconds that the model saves when each layer takes so long; negative if it loses."""
        return self.default_s - seconds * len(self.layers)


def tune_tasks(layers: Sequence[Layer], seconds: Mapping[str, float]) -> list[TuneTask]:
    """The kernels that cost time and have a tensor program, those that cost most first.

    Parameters
    ----------
    layers : sequence of Layer
    seconds : dict of str to float
        In which each layer has to be done to be as good as before; layers without an entry, such
        as concatenations that need no copy, cost nothing.
    """
    by_key: dict[str, TuneTask] = {}
    for group in unique_kernels(layers):
        names = tuple(layer.name for layer in group)
        if not any(seconds.get(name) for name in names):
            continue
        program = tensor_program(group[0])
        if isinstance(program, str):
            continue
        task = TuneTask(names, program, sum(seconds.get(name, 0.0) for name in names))
        if other := by_key.get(task.key):
            # Workloads that our algorithms tell apart, but TVM's implementation doesn't.
            names = (*other.layers, *names)
            task = TuneTask(names, other.program, other.default_s + task.default_s)
        by_key[task.key] = task
    return sorted(by_key.values(), key=lambda task: -task.default_s)


def estimated_seconds(plan: Plan) -> dict[str, float]:
    """The cost model's time of each layer."""
    return {layer.name: layer.estimate_us * 1e-6 for layer in plan}
