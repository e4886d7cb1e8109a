"""Batch dimensions folded: worked cases, and the order of elements for random strides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedules.strided import seen
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView


@pytest.mark.parametrize(
    ("left", "right", "batch", "m"),
    [
        ((4, 6), (6, 5), (), 4),
        ((2, 3, 4, 6), (2, 3, 6, 5), (6,), 4),
        ((2, 3, 4, 6), (6, 5), (), 24),
        ((2, 3, 4, 6), (2, 1, 6, 5), (2,), 12),
        ((2, 3, 4, 6), (3, 6, 5), (2, 3), 4),
        ((3, 4, 6), (2, 3, 6, 5), (2, 3), 4),
        ((4, 6), (2, 3, 6, 5), (6,), 4),
        ((1, 3, 1, 4, 6), (1, 3, 1, 6, 5), (3,), 4),
        # A single row doesn't make one product of several right sides.
        ((3, 1, 6), (3, 6, 5), (3,), 1),
        ((3, 1, 6), (6, 5), (), 3),
    ],
)
def test_contiguous(left: tuple, right: tuple, batch: tuple, m: int) -> None:
    folded = fold_batch(MatmulWorkload.of(left, right))
    assert (folded.batch, folded.m, folded.n, folded.k) == (batch, m, 5, 6)


def test_heads_and_batch_have_strides_of_their_own() -> None:
    heads = StridedView.contiguous((2, 5, 3, 8)).permute((0, 2, 1, 3))
    w = MatmulWorkload.of((2, 5, 24), (2, 3, 8, 4), lhs=heads)
    assert fold_batch(w).batch == (2, 3)
    assert fold_batch(MatmulWorkload.of((2, 5, 24), (8, 4), lhs=heads)).batch == (2, 3)


@given(st.data())
def test_folding_keeps_every_element_in_its_place(data: st.DataObject) -> None:
    batch = data.draw(st.lists(st.integers(1, 3), max_size=3))
    sizes = {"m": data.draw(st.integers(1, 3)), "n": 2, "k": 3}
    views = {}
    for name, dims in (("lhs", "mk"), ("rhs", "kn"), ("out", "mn")):
        shape = [*batch, *(sizes[d] for d in dims)]
        if name != "out":
            shape = [1 if data.draw(st.booleans()) and i < len(batch) else s
                     for i, s in enumerate(shape)]  # fmt: skip
        order = data.draw(st.permutations(range(len(shape))))
        base = StridedView.contiguous([shape[a] for a in order])
        whole = base.permute([order.index(a) for a in range(len(shape))])
        views[name] = whole.broadcast((*batch, *shape[-2:]))
    w = MatmulWorkload(**views, lhs_shape=(), rhs_shape=(), out_shape=())
    folded = fold_batch(w)
    buffer = np.arange(27 * 9)
    assert (folded.macs, folded.n, folded.k) == (w.macs, w.n, w.k)
    for name in ("lhs", "out"):
        before, after = seen(buffer, getattr(w, name)), seen(buffer, getattr(folded, name))
        np.testing.assert_array_equal(after.ravel(), before.ravel())
    # Each row meets the right side that it did before.
    before, after = seen(buffer, w.rhs), seen(buffer, folded.rhs)
    np.testing.assert_array_equal(
        np.repeat(after.reshape(-1, 6), folded.m, axis=0),
        np.repeat(before.reshape(-1, 6), w.m, axis=0),
    )
