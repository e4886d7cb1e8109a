"""Compiled kernels that versions of a model share, so that each compiles only what is new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm_ffi
from tvm import tirx

from tvm_ext.compile_kernels import compile_kernels
from tvm_ext.target import CpuTarget


class KernelCache:
    """Machine code of kernels for one target, by what they compute.

    Parameters
    ----------
    target : CpuTarget
    """

    def __init__(self, target: CpuTarget) -> None:
        self.target = target
        # Functions without a name, by their structural hash, and the names that they have here.
        self._functions: dict[int, list[tuple[tirx.PrimFunc, str]]] = {}
        self._count = 0
        self._modules: dict[str, Any] = {}

    def names(self, kernels: Mapping[str, tirx.PrimFunc]) -> dict[str, str]:
        """The names that kernels have here, given theirs: equal kernels have one.

        Parameters
        ----------
        kernels : Mapping of str to PrimFunc
        """
        return {name: self._name(name, function) for name, function in kernels.items()}

    def _name(self, name: str, function: tirx.PrimFunc) -> str:
        function = function.without_attr("global_symbol")
        bucket = self._functions.setdefault(int(tvm_ffi.structural_hash(function)), [])
        for known, here in bucket:
            if tvm_ffi.structural_equal(known, function):
                return here
        self._count += 1
        here = f"{name.rstrip('0123456789')}{self._count}"
        bucket.append((function, here))
        return here

    def modules(self, kernels: Mapping[str, tirx.PrimFunc]) -> list[Any]:
        """The modules that have these kernels, and perhaps others; compiled where they are new.

        Parameters
        ----------
        kernels : Mapping of str to PrimFunc
            By the names of `names`.
        """
        new = {n: function for n, function in kernels.items() if n not in self._modules}
        for module, made in compile_kernels(new, self.target):
            self._modules.update(dict.fromkeys(made, module))
        found: list[Any] = []
        for name in kernels:
            if not any(self._modules[name] is module for module in found):
                found.append(self._modules[name])
        return found
