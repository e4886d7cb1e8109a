"""Element types, as NumPy and TVM name them."""

from __future__ import annotations

import numpy as np


def itemsize(dtype: str) -> int:
    """Bytes of one element; TVM stores bool as a byte."""
    return 1 if dtype == "bool" else np.dtype(dtype).itemsize
