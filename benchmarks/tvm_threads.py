"""The size of TVM's thread pool, for a fair comparison.

By itself the pool has half the logical processors and pins the calling thread to one of them, which
engines created later inherit. Its workers spin after a call for more than 240 ms, which takes a
core from the engine that runs next. `prepare_tvm_threads` prevents all three.
"""

from __future__ import annotations

import os
import sys

# Workers yield about once a microsecond: some 15 ms, longer than any gap inside a network and
# shorter than the harness's sleep.
_TVM_SPIN_COUNT = "20000"


def prepare_tvm_threads(most: int) -> None:
    """Set the environment that TVM's thread pool reads when it starts.

    The pool never grows past the number of workers it started with, so that `set_tvm_threads` can
    only choose among 1 to `most`.

    Parameters
    ----------
    most : int
        The largest number of threads that will be asked for.

    Raises
    ------
    RuntimeError
        If TVM has been imported already, when its pool may have started.
    """
    if "tvm" in sys.modules:
        raise RuntimeError("prepare_tvm_threads must be called before tvm is imported")
    os.environ["TVM_NUM_THREADS"] = str(most)
    os.environ["TVM_BIND_THREADS"] = "0"
    os.environ["TVM_THREAD_POOL_SPIN_COUNT"] = _TVM_SPIN_COUNT


def set_tvm_threads(threads: int) -> None:
    """Set how many threads TVM uses for the calls that this thread makes from now on.

    Parameters
    ----------
    threads : int
        From 1 to what `prepare_tvm_threads` was given.

    Raises
    ------
    RuntimeError
        If the pool has fewer workers.
    """
    import tvm

    # Mode 1 asks for the fast cores first; without binding it only sets the number.
    tvm.get_global_func("runtime.config_threadpool")(1, threads)
    got = tvm.get_global_func("runtime.NumThreads")()
    if got != threads:
        raise RuntimeError(
            f"TVM's pool gives {got} threads, not {threads}: call prepare_tvm_threads({threads}) "
            "before tvm is imported"
        )
