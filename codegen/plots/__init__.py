"""Pictures of runs and sweeps, with matplotlib's object interface."""

from tvm_ext.codegen.plots.gantt import gantt
from tvm_ext.codegen.plots.pareto import pareto
from tvm_ext.codegen.plots.roofline import roofline
from tvm_ext.codegen.plots.stacked_bars import stacked_bars

__all__ = ["gantt", "pareto", "roofline", "stacked_bars"]
