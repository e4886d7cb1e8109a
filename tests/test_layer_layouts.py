"""Which layouts are the same bytes, against numpy's."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tvm_ext.layer_layouts import reads_as
from tvm_ext.schedules.layout import to_blocked

SHAPES = ((1, 24, 1, 1), (2, 24, 1, 1), (2, 16, 1), (1, 16, 1, 2), (1, 24), (3, 8, 1, 1, 1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_reads_as_another_layout_begins_with_its_bytes(shape: tuple[int, ...]) -> None:
    """Every element differs, so that no order looks like another; missing lanes are zeros."""
    data = np.arange(1, np.prod(shape) + 1).reshape(shape)
    blocks = (0, 8, 16) if len(shape) > 2 else (0,)
    for stored, wanted in product(blocks, repeat=2):
        there = to_blocked(data, stored).reshape(-1)
        want = to_blocked(data, wanted).reshape(-1)
        begins = len(want) <= len(there) and np.array_equal(there[: len(want)], want)
        # What pads a block may be anything: only the model's own layout is read from a padded one.
        padded = any(block and shape[1] % block for block in (stored, wanted))
        legal = stored == wanted or wanted == 0 or not padded
        assert reads_as(shape, stored, wanted) == (begins and legal)
