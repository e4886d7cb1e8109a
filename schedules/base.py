"""What an algorithm is, and the registry in which the planner finds it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from tvm import tirx

from tvm_ext.schedules.stages import stages
from tvm_ext.target import CpuTarget

Params = Mapping[str, Any]
W = TypeVar("W")


@dataclass(frozen=True)
class Support:
    """Whether an algorithm takes a workload; when it doesn't, `reason` says why."""

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


YES = Support()


def refuse(reason: str) -> Support:
    """A refusal; `reason` names the property, the value seen and the limit."""
    return Support(reason)


class Algorithm(ABC, Generic[W]):
    """One way to compute one kind of workload: a kernel, its parameters and its cost.

    A subclass is registered with `register` and lives in a file of its own. It never keeps state:
    everything that it decides is in the parameters, which the plan shows and the user can edit.
    """

    name: ClassVar[str]
    workload_type: ClassVar[type | tuple[type, ...]]
    # How the weights are stored; any but dense is only for workloads with a sparsity.
    storage: ClassVar[str] = "dense"
    # Chains of producers that its kernels compute, as types of workloads, the nearest first.
    producers: ClassVar[tuple[tuple[type, ...], ...]] = ((),)
    # Whether its kernels can store the channels of a convolution's result shuffled.
    stores_shuffled: ClassVar[bool] = False
    # What its kernels need of a CPU beyond the target's vectors, by LLVM's names.
    features: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def supports(self, workload: W, target: CpuTarget) -> Support:
        """Whether this algorithm computes `workload` correctly on `target`."""

    def layouts(self, workload: W, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        """The (input, output) channel blocks that it can use; 0 is the model's own layout.

        A block of 8 stands for NC8c, NCW8c, NCHW8c or NCDHW8c, by the tensor's rank.
        """
        return ((0, 0),)

    @abstractmethod
    def space(self, workload: W, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        """Every parameter with its legal values."""

    @abstractmethod
    def default(self, workload: W, target: CpuTarget) -> dict[str, Any]:
        """The parameters to use when nothing was measured."""

    @abstractmethod
    def cost(self, workload: W, params: Params, target: CpuTarget) -> float:
        """Estimated time in seconds on all of the target's cores."""

    def pack(
        self, workload: W, params: Params, target: CpuTarget, weights: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """The constant weights in the form that the kernel reads; done once, at build time."""
        return [np.ascontiguousarray(w) for w in weights]

    @abstractmethod
    def kernel(
        self, workload: W, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        """The scheduled function.

        Its arguments are the data inputs, the packed weights, the epilogue's operands, the output.
        """

    def tolerance(self, workload: W, params: Params) -> float:
        """Largest error relative to the largest output that the method itself may cause."""
        return 1e-4

    def check(self, workload: W, params: Params, target: CpuTarget) -> str:
        """What is wrong with `params`, or an empty string."""
        space = self.space(workload, target)
        for key, value in params.items():
            if key not in space:
                allowed = ", ".join(space) or "none"
                return f"algorithm {self.name} has no parameter {key!r}; allowed: {allowed}"
            if value not in space[key]:
                return f"{self.name}.{key} = {value!r} is not one of {list(space[key])}"
        missing = [key for key in space if key not in params]
        return f"algorithm {self.name} needs parameters {missing}" if missing else ""


_REGISTRY: dict[str, Algorithm[Any]] = {}
A = TypeVar("A", bound=type[Algorithm[Any]])


def register(cls: A) -> A:
    """Class decorator: make an algorithm known to the planner under its name."""
    if cls.name in _REGISTRY:
        raise ValueError(f"algorithm {cls.name!r} is registered twice")
    _REGISTRY[cls.name] = cls()
    return cls


def algorithms(workload: Any = None) -> dict[str, Algorithm[Any]]:
    """The registered algorithms, by name: all, or those made for this type of workload.

    These are also made for the types of its producers, and for the order in which it is stored.
    """
    if workload is None:
        return dict(_REGISTRY)
    chain = stages(workload)
    producers = tuple(map(type, reversed(chain[:-1])))
    shuffled = any(getattr(stage, "shuffle", 1) > 1 for stage in chain)
    return {
        name: alg
        for name, alg in _REGISTRY.items()
        if isinstance(workload, alg.workload_type)
        and producers in alg.producers
        and (alg.stores_shuffled or not shuffled)
    }
