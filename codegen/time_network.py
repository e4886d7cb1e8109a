"""A network's cycles without its values."""

from __future__ import annotations

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import compile_network
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.simulator import Result, simulate


def time_network(network: Network, accelerator: Accelerator, *, mapping: str = "auto") -> Result:
    """Compile a network and simulate one run of it: cycles don't depend on inputs.

    Parameters
    ----------
    network : Network
    accelerator : Accelerator
    mapping : str
        Of `compile_network`.

    Raises
    ------
    LoweringError
        The network doesn't fit the accelerator.
    """
    program = compile_network(network, accelerator, mapping=mapping)
    memory = np.zeros(program.memory_bytes, np.uint8)
    return simulate(program, accelerator, memory, arithmetic=False)
