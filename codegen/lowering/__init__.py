"""Lowering: network and accelerator to program."""

from tvm_ext.codegen.lowering.check import RoomCheck
from tvm_ext.codegen.lowering.compile_network import (
    MAPPINGS,
    compile_network,
    make_plan,
    pack_inputs,
    unpack_outputs,
)
from tvm_ext.codegen.lowering.emit_network import emit_plan, planned_cycles
from tvm_ext.codegen.lowering.evolve import SearchOptions
from tvm_ext.codegen.lowering.plan import MovePlan, NestPlan, NetworkPlan
from tvm_ext.codegen.lowering.search import plan_search

__all__ = [
    "MAPPINGS",
    "MovePlan",
    "NestPlan",
    "NetworkPlan",
    "RoomCheck",
    "SearchOptions",
    "compile_network",
    "emit_plan",
    "make_plan",
    "pack_inputs",
    "plan_search",
    "planned_cycles",
    "unpack_outputs",
]
