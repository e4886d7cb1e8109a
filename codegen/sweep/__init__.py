"""Exploring designs: a model's costs on many variants of the accelerator."""

from tvm_ext.codegen.sweep.pareto import OBJECTIVES, pareto_front
from tvm_ext.codegen.sweep.result import Sweep
from tvm_ext.codegen.sweep.row import Failure, Point, Row, run_point
from tvm_ext.codegen.sweep.sweep import sweep

__all__ = ["OBJECTIVES", "Failure", "Point", "Row", "Sweep", "pareto_front", "run_point", "sweep"]
