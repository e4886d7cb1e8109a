"""The compiled model: call it, time it, look inside it, save it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.artifact.write import save
from tvm_ext.benchmark import Benchmark, benchmark
from tvm_ext.compile import compile_standalone
from tvm_ext.errors import ArtifactError, CallError
from tvm_ext.inputs import Inputs, checked, random_inputs
from tvm_ext.linking import check_linker, link
from tvm_ext.memory import Memory
from tvm_ext.plan import Plan
from tvm_ext.program import Program
from tvm_ext.target import CpuTarget

if TYPE_CHECKING:
    from tvm_ext.viz import Drawing


class Executable:
    """A model compiled for one CPU. Not for use by two threads at once: it owns its memory.

    Attributes
    ----------
    plan : Plan
        The decisions that it was compiled from.
    target : CpuTarget
    input_names, output_names : tuple of str
    """

    def __init__(
        self,
        executable: Any,
        program: Program,
        constants: Mapping[int, np.ndarray],
        plan: Plan,
        target: CpuTarget,
        kernels: Mapping[str, Any] | None = None,
    ) -> None:
        self.plan, self.target = plan, target
        self.program = program
        self.input_names = tuple(program.inputs)
        self.output_names = tuple(program.outputs)
        self._executable = executable
        self._constants = dict(constants)
        self._kernels = kernels
        self._memory: Memory | None = None
        self._run: Callable[[Any], Any] | None = None

    def __call__(self, inputs: Inputs) -> np.ndarray | list[np.ndarray]:
        """Run the model.

        Parameters
        ----------
        inputs : dict, list or ndarray
            Arrays by input name, in the order of `input_names`, or the only one.

        Returns
        -------
        ndarray or list of ndarray
            The output, or the outputs in the order of `output_names`; new arrays.

        Raises
        ------
        CallError
            An input is missing, unknown, or has another shape or dtype.
        """
        self.set_inputs(inputs)
        self.run()
        assert self._memory is not None
        outputs = [self._memory.arrays[n].copy() for n in self.program.outputs.values()]
        return outputs[0] if len(outputs) == 1 else outputs

    def set_inputs(self, inputs: Inputs) -> None:
        """Check the inputs and copy them into the model's memory."""
        arrays = checked(self.program, inputs)
        memory = self._ready()
        for name, array in arrays.items():
            np.copyto(memory.arrays[self.program.inputs[name]], array)

    def run(self) -> None:
        """Run on the inputs set last (inputs' memory may be reused while it runs)."""
        memory = self._ready()
        assert self._run is not None
        self._run(memory.state)

    def _ready(self) -> Memory:
        if self._memory is None:
            if not self.target.is_host:
                raise CallError(f"this model is compiled for {self.target.name}, not for this CPU")
            machine = relax.VirtualMachine(self._executable, tvm.cpu())
            self._run = machine["main"]
            self._memory = Memory(self.program, self._constants)
            # The slab holds them from here on.
            self._constants = {n: self._memory.constant(n) for n in self._constants}
        return self._memory

    @property
    def flops(self) -> float:
        """Floating-point operations of one inference."""
        return sum(layer.gflop for layer in self.plan) * 1e9

    def benchmark(
        self, inputs: Inputs | None = None, *, runs: int = 50, min_seconds: float = 0.5
    ) -> Benchmark:
        """Time whole inferences, without the copies in and out.

        Parameters
        ----------
        inputs : dict, list or ndarray, optional
            What to run on; random data without.
        runs : int
            At least so many.
        min_seconds : float
            At least so long.
        """
        self.set_inputs(self.random_inputs() if inputs is None else inputs)
        return benchmark(self, runs, min_seconds)

    def random_inputs(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Standard normal floats, zeros and ones for integers, of the right shapes."""
        return random_inputs(self.program, seed)

    def profile(self, inputs: Inputs | None = None, *, runs: int = 20) -> Any:
        """Time every layer inside the running model; see `tvm_ext.profiler.Profile`."""
        from tvm_ext.profiler import profile

        self.set_inputs(self.random_inputs() if inputs is None else inputs)
        return profile(self, runs)

    def kernel(self, name: str) -> Any:
        """The compiled function of one kernel call (`program.calls[i].kernel`)."""
        module = self._executable.mod if hasattr(self._executable, "mod") else self._executable
        for library in [module, *module.imports]:
            function = library.get_function(name) if library.implements_function(name) else None
            if function is not None:
                return function
        return tvm.get_global_func(name)

    @property
    def memory(self) -> Memory:
        """The model's buffers."""
        return self._ready()

    @property
    def constants(self) -> Mapping[int, np.ndarray]:
        """The contents of the constant buffers, by number; not to be written to."""
        return self._constants

    def assembly(self) -> str:
        """The machine code of all kernels as text.

        Raises
        ------
        ArtifactError
            The model comes from a file, which holds machine code only.
        """
        if self._is_loaded:
            raise ArtifactError("a loaded model has no assembly text; build it from the model")
        modules = [module for module in self._executable.mod.imports if module.kind == "llvm"]
        return "\n".join(str(module.inspect_source("asm")) for module in modules)

    @property
    def _is_loaded(self) -> bool:
        return isinstance(self._executable, tvm.runtime.Module)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model as one file, which `tvm_ext.load` reads; see `tvm_ext.artifact`."""
        return save(self, Path(path))

    def link(self, path: str | os.PathLike[str]) -> None:
        """Write the kernels and the VM function as a shared library, without the weights.

        Raises
        ------
        ArtifactError
            The model comes from a file, or linking fails.
        """
        if self._is_loaded:
            raise ArtifactError("a loaded model can't be saved again; copy its file instead")
        link(self._executable, path)

    def export_library(self, path: str | os.PathLike[str]) -> Path:
        """Write a shared library that TVM's own runtime runs, without this package.

        ``tvm.relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())["main"](x, ...)``
        takes the inputs in the order of `input_names` and returns the output, or the outputs as
        a tuple. The weights are inside.

        Parameters
        ----------
        path : path
            Customarily with the suffix ``.so``.

        Raises
        ------
        ArtifactError
            The model comes from a file, there is no C compiler, or linking fails.
        """
        if self._kernels is None:
            raise ArtifactError("a loaded model can't be exported; build it from the model")
        check_linker(self.target)
        code = compile_standalone(self.program, self._kernels, self.constants, self.target)
        link(code, path)
        return Path(path)

    def report(
        self, path: str | os.PathLike[str] | None = None, *, graph: Drawing | None = None
    ) -> str:
        """A text report; with `path`, also a self-contained HTML page there.

        `graph` is a picture of the model for that page, of `tvm_ext.viz.fusion_graph`.
        """
        from tvm_ext.report import report

        return report(self, None if path is None else Path(path), graph)
