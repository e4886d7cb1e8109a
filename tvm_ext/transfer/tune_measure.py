"""Build, check and time scheduled kernels in processes of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import tvm

from tvm_ext.linking import check_linker
from tvm_ext.schedules.default_schedule import schedule_prim_func
from tvm_ext.schedules.tuned import buffer_shapes, first_line
from tvm_ext.target import CpuTarget
from tvm_ext.transfer import tune_worker
from tvm_ext.transfer.tensor_program import LayerProgram
from tvm_ext.transfer.tune_processes import Outcome, Processes


@dataclass(frozen=True)
class MeasureOptions:
    """How kernels are measured.

    Attributes
    ----------
    build_timeout_s, run_timeout_s : float
        After so long a build or a run is killed, and counts as failed.
    repeats : int
        Repetitions, whose median counts.
    least_ms : float
        Least duration of a repetition.
    tolerance : float
        Largest error relative to the output's largest magnitude.
    """

    build_timeout_s: float = 30.0
    run_timeout_s: float = 10.0
    repeats: int = 3
    least_ms: float = 10.0
    tolerance: float = 1e-4


@dataclass(frozen=True)
class Measurement:
    """A kernel's median seconds; or, if `failure` isn't empty, why there are none."""

    seconds: float
    failure: str = ""


class Measurer:
    """Measures candidates of kernels; a context manager that ends its processes.

    A candidate that crashes, hangs or gives another result than the default schedule fails alone.

    Parameters
    ----------
    target : CpuTarget
        This machine.
    folder : Path
        For libraries and arguments; it exists, and nothing is left in it.
    options : MeasureOptions, optional

    Attributes
    ----------
    workers : int
        So many candidates it works on at a time.

    Raises
    ------
    ArtifactError
        There is no C compiler to link kernels with.
    """

    def __init__(
        self, target: CpuTarget, folder: Path, options: MeasureOptions | None = None
    ) -> None:
        check_linker(target)
        self.target, self.options = target, options or MeasureOptions()
        self.workers = target.cores
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        self._arguments: dict[int, Path] = {}
        self._number = 0
        self._processes = Processes(Path(tune_worker.__file__))

    def __enter__(self) -> Measurer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._processes.__exit__(kind, error, trace)
        shutil.rmtree(self._folder, ignore_errors=True)

    def measure(self, candidates: Sequence[tuple[LayerProgram, tvm.IRModule]]) -> list[Measurement]:
        """Measure scheduled modules of programs.

        All are built first, several at a time; then each runs alone.
        """
        paths = []
        for _ in candidates:
            self._number += 1
            paths.append(self._folder / f"{self._number}.so")
        target, cores = self.target.tvm, self.target.cores
        builds = self._processes.map(
            "build",
            [(mod, target, str(path)) for (_, mod), path in zip(candidates, paths, strict=True)],
            cores,
            self.options.build_timeout_s,
        )
        done = [
            (program, path)
            for (program, _), path, build in zip(candidates, paths, builds, strict=True)
            if not build.failure
        ]
        ran = iter(self._run_built(done))
        found = []
        for path, build in zip(paths, builds, strict=True):
            failed = Measurement(np.inf, f"build: {reason(build)}")
            found.append(failed if build.failure else next(ran))
            path.unlink(missing_ok=True)
        return found

    def _run_built(self, built: Sequence[tuple[LayerProgram, Path]]) -> list[Measurement]:
        """Check and time libraries: one at a time, so that nothing disturbs what is timed."""
        return self._run_local(
            built, workers=1, least_ms=self.options.least_ms, repeats=self.options.repeats
        )

    def _run_local(
        self, built: Sequence[tuple[LayerProgram, Path]], *, workers: int, least_ms: float,
        repeats: int,
    ) -> list[Measurement]:  # fmt: skip
        o = self.options
        arguments = [
            (str(path), *self._arguments_of(program), least_ms, repeats) for program, path in built
        ]
        outcomes = self._processes.map("run", arguments, workers, o.run_timeout_s)
        found = []
        for outcome in outcomes:
            if outcome.failure:
                found.append(Measurement(np.inf, f"run: {reason(outcome)}"))
                continue
            error, seconds = outcome.value
            found.append(judged(error, seconds, o.tolerance))
        return found

    def _arguments_of(self, program: LayerProgram) -> tuple[str, int]:
        """The folder of a program's arguments, and the number of its inputs."""
        inputs = len(buffer_shapes(program.workload.function)) - 1
        return str(self._prepared(program)), inputs

    def _prepared(self, program: LayerProgram) -> Path:
        """A folder with random inputs, the constants, and the default schedule's output."""
        key = program.workload.key
        if key not in self._arguments:
            folder = self._folder / f"arguments-{len(self._arguments)}"
            folder.mkdir()
            arguments, expected = reference(program, self.target)
            for i, array in enumerate(arguments):
                np.save(folder / f"{i}.npy", array)
            np.save(folder / "expected.npy", expected)
            self._arguments[key] = folder
        return self._arguments[key]


def reference(program: LayerProgram, target: CpuTarget) -> tuple[list[np.ndarray], np.ndarray]:
    """Seeded inputs with the program's constants, and what the default schedule computes of them.

    Floats are standard normal, integers zeros and ones, which are indices that most shapes have.
    """
    rng = np.random.default_rng(0)
    *shapes, (out_shape, out_dtype) = buffer_shapes(program.workload.function)
    arrays = []
    for shape, dtype in shapes[: len(shapes) - len(program.constants)]:
        floating = dtype.startswith(("float", "bfloat"))
        values = rng.standard_normal(shape) if floating else rng.integers(0, 2, shape)
        arrays.append(np.asarray(values).astype(dtype))
    arrays += program.constants
    scheduled = schedule_prim_func(program.workload.function, target)
    library = tvm.compile(tvm.IRModule({"main": scheduled}), target=target.tvm)
    result = tvm.runtime.empty(out_shape, out_dtype)
    library["main"](*(tvm.runtime.tensor(a) for a in arrays), result)
    return arrays, result.numpy()


def judged(error: float, seconds: float, tolerance: float) -> Measurement:
    """The measurement of a run whose output has a relative error."""
    if not error <= tolerance:
        return Measurement(np.inf, f"check: relative error {error:.1e}; at most {tolerance}")
    return Measurement(seconds)


def reason(outcome: Outcome) -> str:
    """One line of a failure, which may hold a whole program."""
    return str(first_line(RuntimeError(outcome.failure)))
