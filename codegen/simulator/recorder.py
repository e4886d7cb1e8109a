"""Events as they happen, made arrays in the end."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from tvm_ext.codegen.simulator.result import Events


class Recorder:
    """Collects one row of integers an instruction, in the order of the fields of `Events`."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = []

    def add(self, *row: int) -> None:
        """Note one instruction."""
        self._rows.append(row)

    def events(self) -> Events:
        """All of them."""
        names = fields(Events)
        columns = np.array(self._rows, np.int64).reshape(-1, len(names)).T
        return Events(*columns)
