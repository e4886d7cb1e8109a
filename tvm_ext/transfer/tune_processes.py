"""Jobs in child processes, with timeouts; one that crashes fails alone."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tvm_ext.transfer import tune_fork_server
from tvm_ext.transfer.tune_fork_server import read_message, write_message


@dataclass(frozen=True)
class Outcome:
    """What a job returned; or, if `failure` isn't empty, why it didn't."""

    value: Any = None
    failure: str = ""


class Processes:
    """Runs jobs in children of a process of its own; a context manager that ends them all.

    The process starts at once and loads TVM meanwhile. It ends by itself if this one is killed.

    Parameters
    ----------
    jobs : Path
        A Python file whose functions are the jobs; it can import what is installed, but isn't part
        of a package itself.
    """

    def __init__(self, jobs: Path) -> None:
        self._jobs = jobs
        self._server: subprocess.Popen[bytes] | None = None
        self._start()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def map(
        self,
        job: str,
        arguments: Sequence[tuple[Any, ...]],
        workers: int,
        timeout_s: float,
    ) -> list[Outcome]:
        """The outcome of a job for each of some arguments.

        Parameters
        ----------
        job : str
            The function's name.
        arguments : sequence of tuple
        workers : int
            So many run at a time.
        timeout_s : float
            After so long a job is killed.
        """
        outcomes: list[Outcome] = [Outcome(failure="crashed (not run)")] * len(arguments)
        sent = answered = 0
        while answered < len(arguments):
            server = self._start()
            assert server.stdin is not None
            assert server.stdout is not None
            try:
                while sent < min(answered + workers, len(arguments)):
                    packed = pickle.dumps(arguments[sent])
                    write_message(server.stdin.fileno(), (sent, timeout_s, job, packed))
                    sent += 1
                answer = read_message(server.stdout.fileno())
            except BrokenPipeError:
                answer = None
            if answer is None:
                # Nobody but the system can end the server, for want of memory. What ran is lost.
                self._end()
                answered = sent = max(sent, answered + 1)
                continue
            number, status, value = answer
            outcomes[number] = _outcome(status, value)
            answered += 1
        return outcomes

    def _start(self) -> subprocess.Popen[bytes]:
        if self._server is None:
            command = [sys.executable, str(tune_fork_server.__file__), str(self._jobs)]
            paths = os.pathsep.join(filter(None, sys.path))
            self._server = subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": paths},
            )  # fmt: skip
        return self._server

    def _end(self) -> None:
        if self._server is not None:
            for stream in (self._server.stdin, self._server.stdout):
                if stream is not None:
                    stream.close()
            self._server.wait()
            self._server = None


def _outcome(status: str, value: Any) -> Outcome:
    if status == "done":
        return Outcome(value)
    if status == "timeout":
        return Outcome(failure="timed out")
    if status == "crash":
        return Outcome(failure=f"crashed ({value})")
    return Outcome(failure=str(value))
