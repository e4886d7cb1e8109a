"""Lowering: network and accelerator to program."""

from tvm_ext.codegen.lowering.compile_network import (
    MAPPINGS,
    compile_network,
    emit_plan,
    make_plan,
    pack_inputs,
    planned_cycles,
    unpack_outputs,
)
from tvm_ext.codegen.lowering.plan import MovePlan, NestPlan, NetworkPlan

__all__ = [
    "MAPPINGS",
    "MovePlan",
    "NestPlan",
    "NetworkPlan",
    "compile_network",
    "emit_plan",
    "make_plan",
    "pack_inputs",
    "planned_cycles",
    "unpack_outputs",
]
