"""Convolution with compressed sparse rows: of each filter, the weights that aren't zero.

It takes any zeros. Every weight is multiplied with vectors of neighbouring positions, which it
reads for itself alone, so that one load feeds one multiply-add: about half of what panels of
several channels reach (`block_sparse`). `sparse_conv` has the loops.

Direct convolution on CSR weights is that of Baghdadi et al., "Tiramisu" and its sparse networks
(2020), and Park et al., "Faster CNNs with Direct Sparse Convolutions" (2017).
"""

from __future__ import annotations

from typing import ClassVar

from tvm_ext.schedules.base import register
from tvm_ext.schedules.sparse_conv import SparseConv


@register
class Csr(SparseConv):
    """Planar input and output, one channel a panel; parameters as of `block_sparse`."""

    name: ClassVar[str] = "csr"
    storage: ClassVar[str] = "csr"
    panels: ClassVar[tuple[int, ...]] = (1,)
