"""The Pareto front: the rows that no other row beats in everything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm_ext.codegen.sweep.row import Row
from tvm_ext.errors import OptionError

OBJECTIVES = ("cycles", "sram_bytes", "energy_pj")
"""What is to be small by default."""

ALLOWED = (*OBJECTIVES, "pes", "dma_read_bytes", "dma_write_bytes", "seconds")


def pareto_front(rows: Sequence[Row], objectives: Sequence[str] = OBJECTIVES) -> tuple[Row, ...]:
    """Rows that no row dominates, in their order.

    A row dominates another if it is as good in every objective and better in one at least. One with
    fewer multiply-accumulates on the accelerator leaves work to the CPU, so it dominates none with
    more. Rows with the same values are kept or left out together.

    Parameters
    ----------
    rows : sequence of Row
    objectives : sequence of str
        Attributes of a row, each to be as small as possible.

    Raises
    ------
    OptionError
        An objective isn't one of `ALLOWED`.
    """
    if wrong := [name for name in objectives if name not in ALLOWED]:
        raise OptionError(f"objective {wrong[0]!r}; allowed: {', '.join(ALLOWED)}")
    values = [[*(getattr(row, name) for name in objectives), -row.macs] for row in rows]
    costs = np.array(values, "float64").reshape(len(rows), len(objectives) + 1)
    return tuple(row for row, cost in zip(rows, costs, strict=True) if not _beaten(cost, costs))


def _beaten(cost: np.ndarray, others: np.ndarray) -> bool:
    return bool(((others <= cost).all(1) & (others < cost).any(1)).any())
