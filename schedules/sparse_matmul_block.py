"""Product of many rows with a constant matrix whose neighbouring outputs have the same zeros.

Panels of 2 to 16 outputs keep the columns that one of them needs, and a vector of rows that is read
for a column feeds a multiply-add for each output. If the outputs have their zeros in the same
places, as block pruning leaves them, nothing that is stored is zero. `sparse_matmul_panels` has the
rest.
"""

from __future__ import annotations

from typing import ClassVar

from tvm_ext.schedules.base import register
from tvm_ext.schedules.sparse_matmul_panels import SparsePanels


@register
class SparseMatmulBlock(SparsePanels):
    """Several outputs a panel; parameters as of `SparsePanels`."""

    name: ClassVar[str] = "sparse_matmul_block"
    storage: ClassVar[str] = "block"
    panels: ClassVar[tuple[int, ...]] = (2, 4, 8, 16)
