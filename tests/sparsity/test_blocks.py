"""Matrices cut into blocks: by hand, round trips, wrong blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sparsity.matrices import bits, matrices
from tvm_ext.errors import OptionError
from tvm_ext.sparsity.blocks import from_blocks, to_blocks

BLOCKS = st.tuples(st.integers(1, 7), st.integers(1, 7))


def test_blocks_at_the_ends_are_padded():
    blocks = to_blocks(np.arange(1, 7).reshape(2, 3), (2, 2))
    np.testing.assert_array_equal(blocks, [[[[1, 2], [4, 5]], [[3, 0], [6, 0]]]])


@given(matrices(), BLOCKS)
def test_round_trip(matrix, block):
    blocks = to_blocks(matrix, block)
    assert blocks.shape[2:] == block
    np.testing.assert_array_equal(bits(from_blocks(blocks, matrix.shape)), bits(matrix))


@pytest.mark.parametrize("block", [(0, 4), (4, 0), (-1, 2)])
def test_a_block_without_rows_or_columns_is_refused(block):
    with pytest.raises(OptionError, match=rf"block \({block[0]}, {block[1]}\): .* at least one"):
        to_blocks(np.ones((4, 4)), block)
