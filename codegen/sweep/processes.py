"""Points of a sweep in several processes; one that crashes or hangs fails alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from threading import local
from typing import TypeAlias

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.sweep.row import Failure, Point

Task: TypeAlias = tuple[tuple[tuple[Network, int], ...], Accelerator, str]
"""Arguments of `run_point`."""

_JOBS = Path(__file__).with_name("jobs.py")


def run_in_processes(
    tasks: Sequence[Task], workers: int, timeout_s: float
) -> Iterator[tuple[int, Point]]:
    """The number of each task and its point, as they end.

    Parameters
    ----------
    tasks : sequence of Task
    workers : int
        So many run at a time.
    timeout_s : float
        A task that takes longer is a failure.
    """
    # Here, so that a sweep in one process needs nothing of it: it belongs to tuning.
    from tvm_ext.transfer.tune_processes import Processes

    mine, servers = local(), ExitStack()

    def start() -> None:
        mine.processes = servers.enter_context(Processes(_JOBS))

    def run(task: Task) -> Point:
        (outcome,) = mine.processes.map("run_point", [task], 1, timeout_s)
        if outcome.failure:
            return Failure(task[1], task[2], "process", outcome.failure)
        point: Point = outcome.value
        return point

    # A thread has one server and waits for it, so that points are told when they are done.
    with servers, ThreadPoolExecutor(workers, initializer=start) as threads:
        numbers = {threads.submit(run, task): number for number, task in enumerate(tasks)}
        try:
            for done in as_completed(numbers):
                yield numbers[done], done.result()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
