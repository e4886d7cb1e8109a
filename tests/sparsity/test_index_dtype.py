"""Index types at the ends of their ranges, by hand."""

import pytest

from tvm_ext.sparsity.index_dtype import index_dtype


@pytest.mark.parametrize(
    ("largest", "dtype"),
    [
        (-1, "uint16"), (0, "uint16"), (65535, "uint16"), (65536, "int32"),
        (2**31 - 1, "int32"), (2**31, "int64"),
    ],
)  # fmt: skip
def test_the_smallest_type_that_holds_it(largest, dtype):
    assert index_dtype(largest) == dtype
