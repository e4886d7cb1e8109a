"""Convolution whose neighbouring filters are zero in the same places.

Panels of 2, 4 or 8 output channels keep the columns that one of them needs. If the filters have
their zeros in the same places, as block pruning leaves them, nothing that is stored is zero, and
every load of the input feeds several multiply-adds. `sparse_conv_kernel` has the loops.

Filters that share a pattern so that a compiler can use it are the idea of XGen (2022, section 2).
"""

from __future__ import annotations

from typing import ClassVar

from tvm_ext.schedules.base import register
from tvm_ext.schedules.sparse_conv import SparseConv


@register
class BlockSparse(SparseConv):
    """Several channels a panel; parameters as of `SparseConv`."""

    name: ClassVar[str] = "block_sparse"
    storage: ClassVar[str] = "block"
    panels: ClassVar[tuple[int, ...]] = (2, 4, 8)
