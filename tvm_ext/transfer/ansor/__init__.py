"""Ansor's records replayed as schedules of TensorIR."""

from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor.dag_library import DagLibrary
from tvm_ext.transfer.ansor.errors import DagError, ReplayError
from tvm_ext.transfer.ansor.repair import Variant, repaired
from tvm_ext.transfer.ansor.replay import Replayed, replay
from tvm_ext.transfer.ansor.report import ReplayReport, replay_report
from tvm_ext.transfer.ansor.shipped import ShippedTask, shipped_records
from tvm_ext.transfer.ansor.workloads import register_workload

__all__ = [
    "ComputeDag", "DagError", "DagLibrary", "ReplayError", "ReplayReport", "Replayed",
    "ShippedTask", "Variant", "register_workload", "repaired", "replay", "replay_report",
    "shipped_records",
]  # fmt: skip
