"""Jobs in children: results, errors, crashes and hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tvm_ext.transfer.tune_processes import Processes

JOBS = """
import os, subprocess, sys, time

def double(x):
    print("not an answer")
    return 2 * x

def fail(text):
    raise ValueError(text)

def crash():
    os.abort()

def leave():
    os._exit(3)

def hang(path):
    subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(1.5); open({path!r}, 'w')"])
    time.sleep(60)

def nap(seconds):
    time.sleep(seconds)
    return seconds

def end_the_server():
    os.kill(os.getppid(), 9)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    path = tmp_path_factory.mktemp("jobs") / "jobs.py"
    path.write_text(JOBS)
    with Processes(path) as made:
        yield made


def test_children(processes: Processes) -> None:
    doubled = processes.map("double", [(i,) for i in range(5)], 2, 30.0)
    assert [outcome.value for outcome in doubled] == [0, 2, 4, 6, 8]
    large = b"x" * (1 << 20)
    (outcome,) = processes.map("double", [(large,)], 1, 30.0)
    assert outcome.value == 2 * large
    (outcome,) = processes.map("fail", [("why",)], 1, 30.0)
    assert (outcome.value, outcome.failure) == (None, "ValueError: why")
    assert processes.map("crash", [()], 1, 30.0)[0].failure == "crashed (SIGABRT)"
    assert processes.map("leave", [()], 1, 30.0)[0].failure == "crashed (exit code 3)"
    assert processes.map("double", [], 1, 30.0) == []
    # Those that finish early come back in their places.
    naps = processes.map("nap", [(0.3,), (0.01,), (0.02,)], 3, 30.0)
    assert [outcome.value for outcome in naps] == [0.3, 0.01, 0.02]


def test_what_hangs_is_killed_with_all_that_it_started(
    processes: Processes, tmp_path: Path
) -> None:
    start = time.monotonic()
    both = processes.map("hang", [(str(tmp_path / "late"),)] * 2, 2, 0.5)
    assert [outcome.failure for outcome in both] == ["timed out"] * 2
    assert time.monotonic() - start < 5
    time.sleep(1.5)
    assert not (tmp_path / "late").exists()


def test_a_server_that_is_killed_is_started_again(processes: Processes) -> None:
    (lost,) = processes.map("end_the_server", [()], 1, 30.0)
    assert lost.failure == "crashed (not run)"
    assert processes.map("double", [(4,)], 1, 30.0)[0].value == 8
