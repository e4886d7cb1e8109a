"""Kernels -> machine code, on all cores: TVM and LLVM take one module at a time each."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tvm
from tvm import tirx

from tvm_ext.target import CpuTarget
from tvm_ext.threads import cores

# A module costs some ten milliseconds by itself, a kernel a hundred to a thousand.
_BATCH = 4


def compile_kernels(
    kernels: Mapping[str, tirx.PrimFunc], target: CpuTarget
) -> list[tuple[Any, list[str]]]:
    """Compile for `target`, some kernels to a module.

    Parameters
    ----------
    kernels : Mapping of str to PrimFunc
        By the names that they are to have in the modules.
    target : CpuTarget

    Returns
    -------
    list of (tvm.runtime.Module, list of str)
        Each with the names of its kernels.
    """
    named = [
        (tvm.ir.GlobalVar(name), function.with_attr("global_symbol", name))
        for name, function in kernels.items()
    ]
    batches = [dict(named[i : i + _BATCH]) for i in range(0, len(named), _BATCH)]

    def compiled(functions: dict[Any, Any]) -> tuple[Any, list[str]]:
        # Targets in scope are a thread's own.
        with target.tvm:
            module = tirx.build(tvm.IRModule(functions), target=target.tvm)
        return module, [str(name.name_hint) for name in functions]

    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(compiled, batches))
