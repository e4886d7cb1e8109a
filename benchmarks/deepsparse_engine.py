"""DeepSparse in an interpreter of its own, as something to call and to time like the others."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

import numpy as np

from benchmarks.engines import Inputs
from benchmarks.own_interpreter import own_interpreter

INTERPRETER = "TVM_EXT_DEEPSPARSE"
"""The environment variable that names a Python with DeepSparse."""

_WORKER = Path(__file__).with_name("deepsparse_worker.py")


class DeepSparseError(RuntimeError):
    """DeepSparse isn't installed, or doesn't take the model."""


def interpreter() -> Path:
    """Return the Python that has DeepSparse: the variable's, or the one that `make bench` makes.

    Raises
    ------
    DeepSparseError
        There is no such file.
    """
    return own_interpreter(INTERPRETER, "deepsparse", DeepSparseError)


class DeepSparseEngine:
    """A model in a process of DeepSparse; calling it runs the model once.

    Attributes
    ----------
    version : str
        DeepSparse's.
    idle_s : float
        Seconds of all calls in which this process only waited for messages to arrive: what a clock
        has to leave out. `clock` does.

    Raises
    ------
    DeepSparseError
        It isn't installed, or doesn't take the model; so do calls that fail.
    """

    def __init__(self, path: Path, inputs: Inputs, threads: int) -> None:
        python = interpreter()
        self.idle_s = 0.0
        self._folder = tempfile.TemporaryDirectory()
        data = Path(self._folder.name) / "inputs.npz"
        np.savez(data, *inputs.values())
        self._process = subprocess.Popen(
            # Isolated: this directory and PYTHONPATH hold modules that hide its own.
            [str(python), "-I", str(_WORKER), str(path), str(data), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # It reports its use to its makers otherwise.
            env={**os.environ, "NM_DISABLE_ANALYTICS": "1"},
        )
        try:
            self.version = self._answer().removeprefix("ready ")
        except DeepSparseError:
            self.close()
            raise

    def __call__(self) -> None:
        start = time.perf_counter()
        seconds = float(self._ask("run"))
        self.idle_s += time.perf_counter() - start - seconds

    def clock(self) -> float:
        """Seconds, in which calls take as long as the worker says that they did."""
        return time.perf_counter() - self.idle_s

    def outputs(self) -> list[np.ndarray]:
        """The outputs of the last run."""
        file = Path(self._folder.name) / "outputs.npz"
        self._ask(f"save {file}")
        with np.load(file) as arrays:
            return [arrays[name] for name in arrays.files]

    def _ask(self, command: str) -> str:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{command}\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise DeepSparseError("its process has ended") from error
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise DeepSparseError("its process has ended")
        if line.startswith("error "):
            raise DeepSparseError(line.removeprefix("error "))
        return line

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        # It may have ended before it read the last command.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()

    def __enter__(self) -> DeepSparseEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
