"""How a product of many rows with a sparse matrix is cut into tasks, parts, strips and panels."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_ext.schedules import cuts
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.target import CpuTarget

_LEAST_WIDTH = 4
_LINE = 16  # float32 values in a cache line


@dataclass(frozen=True)
class SparseBlocking:
    """rows x n x k, with `width` rows in a vector.

    Attributes
    ----------
    rows, n, k : int
        Extents of the product.
    width : int
        Rows in a vector, and outputs in a strip: squares that are transposed in registers.
    outputs, vectors : int
        A tile holds the sums of `outputs`, which divide the width, for `vectors` of rows.
    chunks, parts : int
        Tasks along the rows; passes along the reduction, of which k is a multiple.
    """

    rows: int
    n: int
    k: int
    width: int
    outputs: int
    vectors: int
    chunks: int
    parts: int

    @staticmethod
    def of(w: MatmulWorkload, params: Params, target: CpuTarget) -> SparseBlocking:
        """The cuts that a plan's parameters say."""
        return SparseBlocking(
            fold_batch(w).m, w.n, w.k, row_lanes(w, target), params["outputs"],
            params["vectors"], params["chunks"], params["k_parts"],
        )  # fmt: skip

    @property
    def chunk(self) -> int:
        """Rows of a task: whole vectors, if there are as many."""
        even = -(-self.rows // self.chunks)
        return min(self.rows, -(-even // self.width) * self.width)

    @property
    def tasks(self) -> int:
        """Chunks that aren't empty."""
        return -(-self.rows // self.chunk)

    @property
    def positions(self) -> int:
        """Vectors of rows of a task."""
        return -(-self.chunk // self.width)

    @property
    def tiles(self) -> list[tuple[int, int]]:
        """The tiles of a panel, as (count, vectors)."""
        return cuts.split_extent(self.positions, self.vectors)

    @property
    def pitch(self) -> int:
        """Floats from one column of the transposed rows to the next: an odd number of lines."""
        floats = self.positions * self.width
        return floats if floats <= _LINE else (-(-floats // _LINE) | 1) * _LINE

    @property
    def steps(self) -> int:
        """Columns of a part."""
        return self.k // self.parts

    @property
    def strips(self) -> int:
        """Runs of `width` outputs."""
        return -(-self.n // self.width)

    @property
    def strip_panels(self) -> int:
        """Panels of a strip."""
        return self.width // self.outputs


def row_lanes(w: MatmulWorkload, target: CpuTarget) -> int:
    """Rows that share a vector: its lanes, or fewer where there are few rows."""
    width, rows = _LEAST_WIDTH, fold_batch(w).m
    while width < min(rows, target.lanes):
        width *= 2
    return width
