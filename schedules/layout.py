"""Channel-blocked layouts: (N, C, *spatial) stored as (N, ceil(C / b), *spatial, b).

A block of 0 means the model's own dimension order. Lanes past C hold finite values that nothing
reads.
"""

from __future__ import annotations

import numpy as np

_SPATIAL = {0: "", 1: "W", 2: "HW", 3: "DHW"}


def layout_name(rank: int, block: int) -> str:
    """The field's name: NCHW8c for rank 4 and block 8, NCHW for block 0, else plain.

    Raises
    ------
    ValueError
        A blocked layout of a tensor that has no channel dimension.
    """
    spatial = _SPATIAL.get(rank - 2)
    if block == 0:
        return f"NC{spatial}" if spatial else "plain"
    if spatial is None:
        raise ValueError(f"a tensor of rank {rank} has no channel-blocked layout")
    return f"NC{spatial}{block}c"


def layout_block(name: str) -> int:
    """The channel block of a layout's name; 0 for a plain one."""
    digits = "".join(ch for ch in name if ch.isdigit())
    return int(digits) if name.endswith("c") and digits else 0


def stored_shape(shape: tuple[int, ...], block: int) -> tuple[int, ...]:
    """Shape of the stored array of a tensor of logical `shape`."""
    if block == 0:
        return tuple(shape)
    n, c, *spatial = shape
    return (n, -(-c // block), *spatial, block)


def operand_shape(shape: tuple[int, ...], block: int) -> tuple[int, ...]:
    """As `stored_shape`, but an operand with one channel (broadcast over channels) stays as is."""
    if block == 0 or shape[1] == 1:
        return tuple(shape)
    return stored_shape(shape, block)


def to_blocked(array: np.ndarray, block: int) -> np.ndarray:
    """Store a logical (N, C, *spatial) array in blocks; missing lanes are zero."""
    if block == 0:
        return np.ascontiguousarray(array)
    n, c, *spatial = array.shape
    blocks = -(-c // block)
    if blocks * block != c:
        pad = [(0, 0)] * array.ndim
        pad[1] = (0, blocks * block - c)
        array = np.pad(array, pad)
    split = array.reshape(n, blocks, block, *spatial)
    return np.ascontiguousarray(np.moveaxis(split, 2, -1))


def blocked_order(shape: tuple[int, ...], block: int) -> np.ndarray:
    """Where each stored element of a blocked sample is in the model's own order.

    Parameters
    ----------
    shape : tuple of int
        Logical (N, C, *spatial), whose channels fill their blocks.
    block : int

    Returns
    -------
    ndarray
        Of C * prod(spatial) positions.
    """
    elements = np.arange(np.prod(shape[1:])).reshape(1, *shape[1:])
    return to_blocked(elements, block).reshape(-1)


def from_blocked(array: np.ndarray, channels: int) -> np.ndarray:
    """The inverse of `to_blocked`."""
    split = np.moveaxis(array, -1, 2)
    n, blocks, block, *spatial = split.shape
    return np.ascontiguousarray(split.reshape(n, blocks * block, *spatial)[:, :channels])
