"""The order in which products read flattened feature maps, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_ext.schedules.flattened import reads_blocks, reordered
from tvm_ext.schedules.layout import blocked_order
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView


def _flattened(shape: tuple[int, ...], view: StridedView, **fields: object) -> MatmulWorkload:
    return MatmulWorkload.of(shape, (view.shape[-1], 3), lhs=view, **{"packed": True, **fields})


def test_rows_of_weights_follow_the_blocks() -> None:
    """Two positions of four channels: a block of two holds both channels of each position."""
    order = [0, 2, 1, 3, 4, 6, 5, 7]
    assert blocked_order((1, 4, 2), 2).tolist() == order
    w = _flattened((1, 4, 2), StridedView.contiguous((1, 8)))
    weight = np.arange(24, dtype="float32").reshape(8, 3)
    before = weight.copy()
    np.testing.assert_array_equal(reordered(w, weight, 2), before[order])
    assert reordered(w, weight, 0) is weight
    np.testing.assert_array_equal(weight, before)


@pytest.mark.parametrize(
    "w,lanes,expected",
    (
        (_flattened((2, 8, 3), StridedView.contiguous((2, 24))), 8, True),
        (_flattened((2, 8, 3, 1, 5), StridedView.contiguous((2, 120))), 4, True),
        (_flattened((2, 8, 3), StridedView.contiguous((2, 24))), 16, False),
        (_flattened((2, 24), StridedView.contiguous((2, 24))), 8, False),
        (_flattened((2, 8, 3), StridedView.contiguous((16, 3))), 8, False),
        (_flattened((2, 8, 3), StridedView.contiguous((2, 24)), packed=False), 8, False),
    ),
)
def test_which_products_read_blocks(w: MatmulWorkload, lanes: int, expected: bool) -> None:
    assert reads_blocks(w, lanes) is expected
