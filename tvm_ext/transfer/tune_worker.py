"""The jobs of tuning's child processes: build a kernel; run it, compare and time it.

This file is run by `tune_fork_server`, not imported, so that children need not load this package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm


def build(mod: Any, target: Any, path: str) -> None:
    """Compile a module's `main` into a shared library."""
    tvm.compile(mod, target=target).export_library(path)


def run(path: str, folder: str, inputs: int, least_ms: float, repeats: int) -> tuple[float, float]:
    """Run a library on arguments in files.

    Parameters
    ----------
    path : str
        The library.
    folder : str
        Holds the inputs as ``0.npy``, ``1.npy``, ... and the output as ``expected.npy``.
    inputs : int
    least_ms : float
        Least duration of a repetition.
    repeats : int

    Returns
    -------
    error : float
        Largest one relative to the largest magnitude of the output; infinite if the output isn't
        a number where it should be.
    seconds : float
        Median.
    """
    arrays = [np.load(f"{folder}/{i}.npy", mmap_mode="r") for i in range(inputs)]
    expected = np.load(f"{folder}/expected.npy")
    out = np.empty_like(expected)
    # An element that the kernel forgets is seen.
    out.fill(np.nan if out.dtype.kind == "f" else 1)
    args = [tvm.runtime.tensor(np.asarray(a)) for a in arrays]
    args.append(tvm.runtime.tensor(out))
    library = tvm.runtime.load_module(path)
    library["main"](*args)
    error = relative_error(args[-1].numpy(), expected)
    timer = library.time_evaluator(
        "main", tvm.cpu(), number=1, repeat=repeats, min_repeat_ms=int(least_ms)
    )
    return error, float(np.median(timer(*args).results))


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over the largest magnitude; infinities and NaNs equal themselves."""
    a, b = found.astype("float64"), expected.astype("float64")
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        gap = np.where(same, 0.0, np.abs(a - b))
    if np.isnan(gap).any():
        return float("inf")
    largest = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    return float(gap.max(initial=0.0)) / max(largest, 1e-30)
