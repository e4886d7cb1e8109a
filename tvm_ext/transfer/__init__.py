"""Schedules that were measured before, in Ansor's and MetaSchedule's logs, used again."""

from tvm_ext.transfer.log_files import read_log
from tvm_ext.transfer.log_filter import RecordFilter
from tvm_ext.transfer.log_summary import LogSummary, summarize_log
from tvm_ext.transfer.log_tools import best_records, filter_logs, merge_logs, split_logs
from tvm_ext.transfer.metaschedule_workloads import load_module
from tvm_ext.transfer.record import Record, Skipped, Source, Workload

__all__ = [
    "LogSummary",
    "Record",
    "RecordFilter",
    "Skipped",
    "Source",
    "Workload",
    "best_records",
    "filter_logs",
    "load_module",
    "merge_logs",
    "read_log",
    "split_logs",
    "summarize_log",
]
