"""Copies of contiguous runs between tensors, as concatenations and slices are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.target import CpuTarget

PIECES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Run:
    """`size` elements of each row of `source` (rows, elements), and where they go.

    `source_at` and `target_at` are the first element's place in the rows of both.
    """

    source: Any
    source_at: int
    target_at: int
    size: int


def default_pieces(runs: int, parallel: bool, target: CpuTarget) -> int:
    """In how many pieces a run is cut, so that four a core keep the threads busy."""
    wanted = -(-4 * target.cores // runs) if parallel else 1
    return next((p for p in PIECES if p >= wanted), PIECES[-1])


def copy_runs(
    out: Any, rows: int, runs: Sequence[Run], dtype: str, pieces: int, parallel: bool, lanes: int
) -> None:
    """Emit the loops over rows and pieces; each copies its part of every run.

    Parameters
    ----------
    out : Buffer
        (rows, elements).
    lanes : int
        float32 values in a vector.
    """
    lanes = max(1, 4 * lanes // np.dtype(dtype).itemsize)
    with emit.tasks(parallel, rows, pieces) as (row, piece):
        for run in runs:
            # Pieces of whole vectors; the last one overlaps where they don't fill the run.
            share = min(run.size, -(-run.size // pieces // lanes) * lanes)
            share = share if pieces > 1 else run.size
            start = tirx.min(piece * share, run.size - share) if pieces > 1 else 0

            def copy(at: Any, width: int, run: Run = run, start: Any = start) -> None:
                with emit.loop(width, "vectorized") as lane:
                    x = start + at + lane
                    T.buffer_store(
                        out, run.source[row, run.source_at + x], [row, run.target_at + x]
                    )

            emit.cover(share, lanes, copy)
