"""What the processes of a sweep run. A fork server runs this file; nothing imports it."""

from tvm_ext.codegen.sweep.row import run_point

__all__ = ["run_point"]
