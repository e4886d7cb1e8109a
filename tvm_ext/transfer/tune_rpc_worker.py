"""The job of tuning's child processes with remote machines: run a kernel on an RPC server.

This file is run by `tune_fork_server`, not imported, so that children need not load this package.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tvm
from tvm import rpc


def run_remote(
    tracker: tuple[str, int], key: str, path: str, folder: str, inputs: int, least_ms: float,
    repeats: int, session_s: float,
) -> tuple[str, str, float]:  # fmt: skip
    """Run a library on a server that is free, and keep its output beside the library.

    Parameters
    ----------
    tracker : tuple of str and int
        Host and port.
    key : str
        The servers' key at the tracker.
    path : str
        The library; its output goes to ``<path>.npy``.
    folder : str
        Holds the inputs as ``0.npy``, ``1.npy``, ... and the output as ``expected.npy``.
    inputs : int
    least_ms : float
        Least duration of a repetition.
    repeats : int
    session_s : float
        After so long the server ends the run.

    Returns
    -------
    status : str
        ``"done"``; ``"timeout"``; or ``"lost"``, if there was no server or its connection broke.
    reason : str
        Of the loss.
    seconds : float
        Median.
    """
    # Loaded before a server is taken, which others may wait for.
    arrays = [np.load(f"{folder}/{i}.npy") for i in range(inputs)]
    out = np.empty_like(np.load(f"{folder}/expected.npy"))
    # An element that the kernel forgets is seen.
    out.fill(np.nan if out.dtype.kind == "f" else 1)
    try:
        session = rpc.connect_tracker(*tracker).request(key, session_timeout=session_s, max_retry=2)
        session.upload(path)
        library, device = session.load_module(Path(path).name), session.cpu()
        args = [tvm.runtime.tensor(a, device) for a in (*arrays, out)]
        library["main"](*args)
        result = args[-1].numpy()
        timer = library.time_evaluator(
            "main", device, number=1, repeat=repeats, min_repeat_ms=int(least_ms)
        )
        seconds = float(np.median(timer(*args).results))
    except TimeoutError:
        return "timeout", "", 0.0
    except (RuntimeError, OSError) as error:
        # TVM tells a broken connection by no type of its own.
        return "lost", f"{type(error).__name__}: {error}", 0.0
    np.save(f"{path}.npy", result)
    return "done", "", seconds
