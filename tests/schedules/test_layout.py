"""Names, shapes and contents of channel-blocked layouts."""

import numpy as np
import pytest

from tvm_ext.schedules.layout import (
    from_blocked,
    layout_block,
    layout_name,
    operand_shape,
    stored_shape,
    to_blocked,
)


@pytest.mark.parametrize(
    ("rank", "block", "name"),
    [(4, 16, "NCHW16c"), (4, 0, "NCHW"), (3, 8, "NCW8c"), (5, 4, "NCDHW4c"), (2, 0, "NC")],
)
def test_names(rank, block, name):
    expected = "plain" if name == "NC" else name
    assert layout_name(rank, block) == expected
    assert layout_block(expected) == block


def test_no_blocked_matrix():
    with pytest.raises(ValueError, match="rank 7"):
        layout_name(7, 8)


def test_shapes():
    assert stored_shape((2, 5, 3, 4), 4) == (2, 2, 3, 4, 4)
    assert operand_shape((1, 1, 3, 4), 4) == (1, 1, 3, 4)
    assert operand_shape((1, 5, 1, 1), 4) == (1, 2, 1, 1, 4)


def test_blocks_hold_neighbouring_channels_and_missing_lanes_are_zero():
    x = np.arange(2 * 5 * 3, dtype="float32").reshape(2, 5, 3) + 1
    stored = to_blocked(x, 4)
    assert stored[1, 0, 2, 3] == x[1, 3, 2]
    assert stored[1, 1, 2, 0] == x[1, 4, 2]
    assert (stored[:, 1, :, 1:] == 0).all()
    np.testing.assert_array_equal(from_blocked(stored, 5), x)
