"""Measuring on other machines, of which one is lost and then the other."""

from __future__ import annotations

import math
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, matmul_layer, program, record, sketches
from tests.transfer.rpc_machines import KEY, free_port, free_servers, kill, machines, wait_for
from tests.transfer.test_tune_measure import calling
from tests.transfer.tuning import OPTIONS
from tvm_ext.errors import TuningError
from tvm_ext.transfer.tune_candidates import transferred
from tvm_ext.transfer.tune_measure import MeasureOptions
from tvm_ext.transfer.tune_rpc import RpcMeasurer, measurer, server_count
from tvm_ext.transfer.tune_run import TuningRun
from tvm_ext.transfer.tune_store import TuningStore
from tvm_ext.transfer.tune_task import TuneTask

Machines = tuple[tuple[str, int], list[subprocess.Popen[bytes]]]

PROGRAM = conv(4, 8, 6, 3)
MEASURE = MeasureOptions(run_timeout_s=6.0, repeats=2, least_ms=1.0)
TASKS = [
    TuneTask(("a",), conv(8, 8, 6, 3, 1, ("relu",)), 1e-3),
    TuneTask(("b",), program(matmul_layer(16, 16, 16)), 1e-3),
]


@pytest.fixture(scope="module")
def two() -> Iterator[Machines]:
    with machines(2) as found:
        yield found


def test_a_bad_candidate_fails_alone_and_ends_no_server(two: Machines, tmp_path: Path) -> None:
    tracker, _ = two
    before = server_count(tracker, KEY)
    good, wrong, crash = sketches(PROGRAM)[0].mod, calling("abs", 1), calling("raise", 11)
    with RpcMeasurer(HOST, tmp_path, MEASURE, tracker=tracker, key=KEY) as made:
        found = made.measure([(PROGRAM, mod) for mod in (good, wrong, crash, good)])
        made.options = replace(MEASURE, run_timeout_s=1.0, least_ms=5000.0)
        (hung,) = made.measure([(PROGRAM, good)])
    assert found[0].failure == found[3].failure == ""
    assert 1e-7 < found[0].seconds < 1
    assert found[1].failure == "check: relative error inf; at most 0.0001"
    assert found[2].failure == "run: crashed (SIGSEGV)"
    assert hung.failure == "run: timed out"
    assert server_count(tracker, KEY) == before
    assert list(tmp_path.iterdir()) == []


def test_lost_servers_lose_no_record(two: Machines, tmp_path: Path) -> None:
    """One server is killed while both run a candidate; then the last one is killed too."""
    tracker, servers = two
    wait_for(lambda: free_servers(tracker) == 2)
    donors = [record(conv(8, 8, 8, 3, 1, ("relu",)), 1e-6, n) for n in range(3)]
    donors += [record(program(matmul_layer()), 1e-6, n) for n in range(2)]
    expected = {
        (task.key, c.trace)
        for task in TASKS
        for c in transferred(task.program.workload.function, donors, HOST)
    }

    def kill_one() -> None:
        wait_for(lambda: free_servers(tracker) == 0)
        kill(servers[0])

    killer = threading.Thread(target=kill_one)
    slow = replace(MEASURE, least_ms=200.0)
    now = time.monotonic()
    with (
        TuningStore(tmp_path / "store") as store,
        RpcMeasurer(
            HOST, tmp_path, slow, tracker=tracker, key=KEY, server_wait_s=0.5
        ) as made,
    ):  # fmt: skip
        run = TuningRun(TASKS, store, made, HOST, OPTIONS, 2e-3, now, math.inf)
        killer.start()
        run.transfer(donors)
        killer.join()
        assert servers[0].poll() is not None
        assert server_count(tracker, KEY) == 1
        records = [(r.workload, r.trace) for r in store]
        assert len(expected) >= 5
        assert len(records) == len(set(records))
        assert set(records) == expected
        assert not any(r.failed for r in store)
        kill(servers[1])
        with pytest.raises(TuningError, match=f"has no server with the key '{KEY}' for 0 s"):
            made.measure([(PROGRAM, sketches(PROGRAM)[0].mod)])
        assert len(store) == len(expected)


def test_no_tracker(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(TuningError, match=f"no RPC tracker at 127.0.0.1:{port}: "):
        RpcMeasurer(HOST, tmp_path, tracker=("127.0.0.1", port), key=KEY)
    with pytest.raises(TuningError, match=f"no RPC tracker at 127.0.0.1:{port}: "):
        measurer(HOST, tmp_path, replace(OPTIONS, tracker=f"127.0.0.1:{port}", key=KEY))
    assert list(tmp_path.iterdir()) == []
