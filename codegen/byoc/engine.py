"""What makes a network run: the simulator, or the network's own definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import compile_network, pack_inputs, unpack_outputs
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_reference import run_reference
from tvm_ext.codegen.simulator import Result, simulate

Arrays: TypeAlias = Mapping[str, np.ndarray]
Compiled: TypeAlias = Callable[[Arrays], Arrays]
CompileNetwork: TypeAlias = Callable[[Network, Accelerator], Compiled]


class SimulatedNetwork:
    """A network's program, run on the simulator.

    Attributes
    ----------
    program : Program
        Lowered for the accelerator at construction.
    result : Result or None
        Cycles and events of the last run.

    Raises
    ------
    LoweringError
        At construction: the network doesn't fit the accelerator.
    """

    def __init__(self, network: Network, accelerator: Accelerator) -> None:
        self.network, self.accelerator = network, accelerator
        self.program = compile_network(network, accelerator)
        self.result: Result | None = None

    def __call__(self, inputs: Arrays) -> Arrays:
        """Outputs by name, int8, of int8 inputs by name."""
        memory = self.program.memory_image(pack_inputs(self.network, inputs))
        self.result = simulate(self.program, self.accelerator, memory)
        return unpack_outputs(self.network, self.program.outputs(memory))


def reference_engine(network: Network, accelerator: Accelerator) -> Compiled:
    """Runs networks by their definition in NumPy, without a program or cycles."""
    return lambda inputs: run_reference(network, inputs)
