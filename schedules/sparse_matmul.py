"""Product of many rows with a constant matrix of scattered zeros, in compressed sparse rows.

Each output has columns of its own. Every weight is multiplied with vectors of rows that are read
for it alone, one load for one multiply-add: about half of what panels of several outputs reach
(`sparse_matmul_block`). `sparse_matmul_panels` has the rest.
"""

from __future__ import annotations

from typing import ClassVar

from tvm_ext.schedules.base import register
from tvm_ext.schedules.sparse_matmul_panels import SparsePanels


@register
class SparseMatmul(SparsePanels):
    """One output a panel; parameters as of `SparsePanels`."""

    name: ClassVar[str] = "sparse_matmul"
    storage: ClassVar[str] = "csr"
    panels: ClassVar[tuple[int, ...]] = (1,)
