"""The simulator: what a program computes, and how long it takes."""

from tvm_ext.codegen.simulator.result import Events, Result
from tvm_ext.codegen.simulator.simulate import CYCLE_BUDGET, simulate

__all__ = ["CYCLE_BUDGET", "Events", "Result", "simulate"]
