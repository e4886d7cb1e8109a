"""Bring your own codegen: a quantised model's parts for the accelerator, found, cut out and run."""

from tvm_ext.codegen.byoc.engine import SimulatedNetwork, reference_engine
from tvm_ext.codegen.byoc.match import Refusal
from tvm_ext.codegen.byoc.partition import Partition, partition
from tvm_ext.codegen.byoc.runtime import RUNTIME, Runtime, register
from tvm_ext.codegen.byoc.subgraph import RUN, Subgraph, Summary, read_subgraph, summary

__all__ = [
    "RUN",
    "RUNTIME",
    "Partition",
    "Refusal",
    "Runtime",
    "SimulatedNetwork",
    "Subgraph",
    "Summary",
    "partition",
    "read_subgraph",
    "reference_engine",
    "register",
    "summary",
]
