"""The integers in which sparse formats store their structure."""

from __future__ import annotations

import numpy as np

_DTYPES = (np.dtype("uint16"), np.dtype("int32"), np.dtype("int64"))


def index_dtype(largest: int) -> np.dtype:
    """The smallest of uint16, int32 and int64 that holds 0 to `largest`.

    Parameters
    ----------
    largest : int
        What is stored at most: the last index, or a count.
    """
    return next(dtype for dtype in _DTYPES if largest <= np.iinfo(dtype).max)
