"""An int8 accelerator: its description, programs, compiler and simulator, and sweeps of designs."""

from tvm_ext.codegen.sweep import Sweep, sweep

__all__ = ["Sweep", "sweep"]
