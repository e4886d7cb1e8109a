"""Network and accelerator to program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.lowering.auto import plan_network
from tvm_ext.codegen.lowering.baseline import plan_baseline
from tvm_ext.codegen.lowering.emit_network import emit_plan
from tvm_ext.codegen.lowering.plan import NetworkPlan
from tvm_ext.codegen.lowering.search import plan_search
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.program import Program

MAPPINGS = {"auto": plan_network, "search": plan_search, "baseline": plan_baseline}


def compile_network(
    network: Network, accelerator: Accelerator, *, mapping: str = "auto"
) -> Program:
    """Lower a network to the command stream of one accelerator.

    Buffers of images have the shape (height, width, channels): `pack_inputs` and `unpack_outputs`
    transpose on the host's side.

    Parameters
    ----------
    network : Network
    accelerator : Accelerator
    mapping : str
        ``"auto"``: tilings, loop orders and what stays in SRAM by the timing model, with load,
        compute and store overlapped unless the accelerator has ``double_buffering=False``.
        ``"search"``: the same with tilings that are searched further, see `plan_search`; it takes a
        few times as long. ``"baseline"``: the flow to compare with; see `baseline`.

    Returns
    -------
    Program

    Raises
    ------
    LoweringError
        A layer doesn't fit the accelerator, a sum can leave int32, or `mapping` is unknown.
    """
    return emit_plan(make_plan(network, accelerator, mapping=mapping))


def make_plan(network: Network, accelerator: Accelerator, *, mapping: str = "auto") -> NetworkPlan:
    """The decisions of `compile_network`, without instructions; arguments and errors as there."""
    if mapping not in MAPPINGS:
        raise LoweringError(f"mapping {mapping!r}; allowed: {', '.join(MAPPINGS)}")
    if both := [name for name in network.outputs if name in network.inputs]:
        raise LoweringError(
            f"network {network.name}: {both[0]!r} is an input and an output; allowed: one of them"
        )
    return MAPPINGS[mapping](network, accelerator)


def pack_inputs(network: Network, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A network's inputs, (1, C, H, W) or (M, K), as its program's input buffers have them."""
    return {
        name: np.ascontiguousarray(x[0].transpose(1, 2, 0)) if _is_image(network, name) else x
        for name, x in inputs.items()
    }


def unpack_outputs(network: Network, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A program's outputs in the network's shapes, (1, C, H, W) or (M, K)."""
    return {
        name: np.ascontiguousarray(y.transpose(2, 0, 1)[np.newaxis])
        if _is_image(network, name)
        else y
        for name, y in outputs.items()
    }


def _is_image(network: Network, name: str) -> bool:
    return len(network.tensors[name].shape) == 4
