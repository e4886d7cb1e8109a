"""A process that has TVM loaded and forks a child for each job. Run as a script, by `Processes`.

Its argument is a Python file with the jobs, functions that requests name. Requests come from
standard input and answers go to standard output, each a pickle behind its length in 8 bytes. A
request is (number, seconds, name, pickled arguments); its answer is (number, status, value) with
the status ``done``, ``error``, ``timeout`` or ``crash``. A child that crashes or hangs takes
nothing with it, and the next costs no start of TVM. At the end of the input, all children are
killed.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import runpy
import selectors
import signal
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import Any

# Linux's PR_SET_PDEATHSIG.
_DIE_WITH_PARENT = 1


@dataclass
class Child:
    """A running job, and what it has told so far."""

    number: int
    pid: int
    pipe: int
    deadline: float
    told: bytearray = field(default_factory=bytearray)


def read_message(stream: int) -> Any:
    """The next pickle; None at the end of the stream."""
    head = _read_exactly(stream, 8)
    if head is None:
        return None
    body = _read_exactly(stream, struct.unpack("<Q", head)[0])
    return None if body is None else pickle.loads(body)


def write_message(stream: int, message: Any) -> None:
    """Send a pickle."""
    body = pickle.dumps(message)
    data = memoryview(struct.pack("<Q", len(body)) + body)
    while data:
        data = data[os.write(stream, data) :]


def _read_exactly(stream: int, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(stream, min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


def serve(requests: int, answers: int, jobs: dict[str, Any]) -> None:
    """Fork children until the requests end."""
    children: dict[int, Child] = {}
    selector = selectors.DefaultSelector()
    selector.register(requests, selectors.EVENT_READ)
    while True:
        next_deadline = min((c.deadline for c in children.values()), default=None)
        wait = None if next_deadline is None else max(next_deadline - time.monotonic(), 0)
        for key, _ in selector.select(wait):
            if key.fd == requests:
                request = read_message(requests)
                if request is None:
                    for child in children.values():
                        _kill(child)
                    return
                child = _start((requests, answers), jobs, *request)
                children[child.pipe] = child
                selector.register(child.pipe, selectors.EVENT_READ)
            elif part := os.read(key.fd, 1 << 16):
                children[key.fd].told += part
            else:
                selector.unregister(key.fd)
                child = children.pop(key.fd)
                write_message(answers, (child.number, *_ending(child)))
        for child in list(children.values()):
            if time.monotonic() >= child.deadline:
                selector.unregister(child.pipe)
                del children[child.pipe]
                _kill(child)
                write_message(answers, (child.number, "timeout", None))


def _start(
    streams: tuple[int, int],
    jobs: dict[str, Any],
    number: int,
    seconds: float,
    name: str,
    arguments: bytes,
) -> Child:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            # Else the other side would not see that the server has ended.
            for stream in streams:
                os.close(stream)
            _run(jobs[name], arguments, writing)
        finally:
            os._exit(1)
    os.close(writing)
    return Child(number, pid, reading, time.monotonic() + seconds)


def _run(job: Any, arguments: bytes, pipe: int) -> None:
    """The child's whole life."""
    # A group of its own, so that what it starts, such as a linker, ends with it.
    os.setpgid(0, 0)
    # And it ends with the server.
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    try:
        ending = ("done", job(*pickle.loads(arguments)))
    except BaseException as error:
        ending = ("error", f"{type(error).__name__}: {error}")
    data = memoryview(pickle.dumps(ending))
    while data:
        data = data[os.write(pipe, data) :]
    os._exit(0)


def _ending(child: Child) -> tuple[str, Any]:
    """Status and value of a child that has closed its pipe."""
    os.close(child.pipe)
    _, status = os.waitpid(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0 and child.told:
        ending: tuple[str, Any] = pickle.loads(bytes(child.told))
        return ending
    return "crash", signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _kill(child: Child) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        # Between fork and setpgid, or gone by itself.
        os.kill(child.pid, signal.SIGKILL)
    os.close(child.pipe)
    os.waitpid(child.pid, 0)


def main() -> None:
    """Load TVM, and keep standard output for answers alone."""
    # The script's own folder, whose modules would hide others of the same name.
    sys.path.pop(0)
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # TVM imports PyTorch where it is installed, which takes most of the start; no job needs it.
    sys.modules["torch"] = None  # type: ignore[assignment]
    import tvm  # noqa: F401

    serve(0, answers, runpy.run_path(sys.argv[1]))


if __name__ == "__main__":
    main()
