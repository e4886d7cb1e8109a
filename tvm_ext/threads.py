"""TVM's thread pool: one thread for each core unless TVM_NUM_THREADS says otherwise."""

from __future__ import annotations

import os

import tvm

_SHARED_MODE = 0


def default_threads() -> int:
    """Threads kernels will use: TVM_NUM_THREADS, OMP_NUM_THREADS, else this process's cores."""
    for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return cores()


def cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def configure() -> None:
    """Settle the pool's size before TVM starts it (at the first parallel kernel).

    TVM's own default is half of the logical cores and pins the calling thread to one of them, which
    would slow down everything else in the process.
    """
    os.environ.setdefault("TVM_NUM_THREADS", str(default_threads()))
    os.environ.setdefault("TVM_BIND_THREADS", "0")


def use(threads: int) -> None:
    """Limit the kernels that run from now on to `threads`; results don't depend on it.

    Raises
    ------
    ValueError
        The pool was started with fewer threads.
    """
    tvm.get_global_func("runtime.config_threadpool")(_SHARED_MODE, threads)
    actual = int(tvm.get_global_func("runtime.NumThreads")())
    if actual != threads:
        raise ValueError(
            f"{threads} threads asked for, but TVM's pool has {actual}; "
            f"set TVM_NUM_THREADS={threads} before the first kernel runs"
        )
