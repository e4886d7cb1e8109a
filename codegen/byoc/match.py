"""One operator between quantised tensors, as layers of a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_ext.codegen.byoc.graph import Quantized
from tvm_ext.codegen.network_layers import Layer, TensorSpec


@dataclass(frozen=True)
class Match:
    """What computes one 8-bit variable from others.

    Attributes
    ----------
    output : Quantized
    inputs : tuple of Quantized
        Activations that it reads, each once.
    layers : tuple of Layer
        The last writes the output.
    tensors : Mapping of str to TensorSpec
        All of theirs; shapes are the model's, with its batch.
    constants : Mapping of str to ndarray
    operators : tuple of str
        The model's operators that it stands for.
    inside : tuple of Var
        Values that only it reads.
    """

    output: Quantized
    inputs: tuple[Quantized, ...]
    layers: tuple[Layer, ...]
    tensors: Mapping[str, TensorSpec]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    operators: tuple[str, ...] = ()
    inside: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The name of the value that it computes."""
        return self.layers[-1].output

    @property
    def macs(self) -> int:
        """Multiply-accumulates, of the whole batch."""
        return sum(layer.macs(self.tensors, self.constants) for layer in self.layers)


@dataclass(frozen=True)
class Refusal:
    """An operator that stays on the CPU.

    Attributes
    ----------
    name : str
        The value that it computes.
    operator : str
        Such as ``nn.conv2d``.
    reason : str
        With the value seen and what is allowed.
    """

    name: str
    operator: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.operator}): {self.reason}"
