"""What building one model costs until it can run: time and memory of a process of its own."""

from __future__ import annotations

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path


def build_cost(path: Path, target: str) -> tuple[float, float]:
    """Build a model in a fresh process, so that nothing else's memory counts, and run it once.

    LLVM makes machine code when the model first runs.

    Parameters
    ----------
    path : pathlib.Path
        The ONNX file.
    target : str
        What `tvm_ext.build` takes.

    Returns
    -------
    tuple[float, float]
        Seconds until the first run has ended, and the process's peak resident memory in MiB,
        interpreter and libraries included.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_build_here, path, target).result()


def _build_here(path: Path, target: str) -> tuple[float, float]:
    import tvm_ext

    start = time.perf_counter()
    tvm_ext.build(path, target).run()
    seconds = time.perf_counter() - start
    return seconds, _peak_mib()


def _peak_mib() -> float:
    """This process's peak resident memory.

    On Linux from its own address space: getrusage's figure is inherited from the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM:"))
        return int(line.split()[1]) / 2**10
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
