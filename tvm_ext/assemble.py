"""Layers and their plan -> executable."""

from __future__ import annotations

import tvm

from tvm_ext.compile import compile_program
from tvm_ext.executable import Executable
from tvm_ext.kernel_cache import KernelCache
from tvm_ext.layers import Layer
from tvm_ext.lower import Progress, lower
from tvm_ext.plan import Plan
from tvm_ext.target import CpuTarget


def assemble(
    mod: tvm.IRModule, layers: list[Layer], plan: Plan, target: CpuTarget,
    output_names: list[str], progress: Progress = lambda _: None, cache: KernelCache | None = None,
) -> Executable:  # fmt: skip
    """Lower and compile a grouped module; parameters as of `lower` and `compile_program`."""
    progress("lower")
    lowered = lower(mod, layers, plan, target, output_names, progress)
    if cache is not None:
        lowered = lowered.renamed(cache.names(lowered.kernels))
    progress("compile")
    code = compile_program(lowered.program, lowered.kernels, target, cache)
    return Executable(code, lowered.program, lowered.constants, plan, target, lowered.kernels)
