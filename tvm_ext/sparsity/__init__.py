"""How sparse weights are stored: NumPy alone, each format an exact round trip of its matrix."""

from tvm_ext.sparsity.bsr import Bsr
from tvm_ext.sparsity.column_panels import ColumnPanels, equal_shares
from tvm_ext.sparsity.csr import Csr
from tvm_ext.sparsity.fkw import Fkw
from tvm_ext.sparsity.pruned_blocks import PrunedBlocks
from tvm_ext.sparsity.summary import Sparsity, summarize

__all__ = [
    "Bsr",
    "ColumnPanels",
    "Csr",
    "Fkw",
    "PrunedBlocks",
    "Sparsity",
    "equal_shares",
    "summarize",
]
