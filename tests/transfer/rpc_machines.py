"""TVM's RPC tracker and servers on this machine, in processes of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tvm import rpc

from tvm_ext.transfer.tune_rpc import server_count

KEY = "test-cpu"


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(module: str, port: int, hidden: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start one of TVM's modules at a port, with the modules of a folder before all others."""
    command = [sys.executable, "-m", f"tvm.exec.{module}", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--port-end", str(port + 1), "--silent", *options]
    paths = os.pathsep.join([str(hidden), *filter(None, sys.path)])
    return subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Until something is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)


def free_servers(tracker: tuple[str, int]) -> int:
    """Servers that run nothing now."""
    session = rpc.connect_tracker(*tracker)
    try:
        return int(session.summary()["queue_info"].get(KEY, {}).get("free", 0))
    finally:
        session.close()


def listens(port: int) -> bool:
    """Whether something does at a port."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@contextmanager
def machines(count: int) -> Iterator[tuple[tuple[str, int], list[subprocess.Popen[bytes]]]]:
    """A tracker's address, and so many servers that have told it."""
    port = free_port()
    tracker = ("127.0.0.1", port)
    folder = tempfile.TemporaryDirectory()
    hidden = Path(folder.name)
    # TVM imports PyTorch where it is installed, which takes most of the start; each of these
    # processes and those that they start would.
    (hidden / "torch.py").write_text("raise ImportError('hidden: it loads slowly')\n")
    processes = [started("rpc_tracker", port, hidden)]
    try:
        wait_for(lambda: listens(port))
        address = f"127.0.0.1:{port}"
        servers = [
            started("rpc_server", free_port(), hidden, "--tracker", address, "--key", KEY)
            for _ in range(count)
        ]
        processes += servers
        wait_for(lambda: server_count(tracker, KEY) == count)
        yield tracker, servers
    finally:
        for process in processes:
            kill(process)
        folder.cleanup()
