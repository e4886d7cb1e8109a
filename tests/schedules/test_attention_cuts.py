"""How attention is cut: blocks of rows for the caches, parts for the threads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules.attention import tensors, workload
from tests.schedules.kernels import AVX512, HOST, NEON
from tvm_ext.schedules import attention_cuts
from tvm_ext.schedules.attention_cuts import Cuts, best_cuts, score_stride, seconds
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView


def attention(heads: int, queries: int, keys: int, size: int = 64) -> MatmulWorkload:
    return workload(*tensors((heads,), queries, keys, size))


@pytest.mark.parametrize("target", [AVX512, NEON], ids=lambda t: t.isa)
def test_scores_stay_in_the_l2_cache(target: object) -> None:
    for tokens in (128, 197, 512, 2048):
        rows = best_cuts(attention(12, tokens, tokens), target)["rows"]
        assert 4 * rows * score_stride(tokens) <= target.l2 / 8 or rows <= 32
        assert rows >= min(tokens, 8)


def test_heads_are_shared_out_before_rows() -> None:
    four, w = replace(AVX512, cores=4), attention(12, 128, 128)
    assert best_cuts(w, four)["chunks"] == 1
    assert best_cuts(attention(1, 128, 128), four)["chunks"] == 4
    # Five heads keep four cores busy for two rounds, cut in four they do for five quarters.
    assert best_cuts(attention(5, 128, 128), four)["chunks"] > 1


def test_blocks_and_tasks_cover_the_rows() -> None:
    w = attention(2, 23, 45)
    params = best_cuts(w, HOST)
    for rows in (1, 5, 7, 23):
        for chunks in (1, 2, 3, 23):
            c = Cuts.of(w, {**params, "rows": rows, "chunks": chunks}, HOST.lanes)
            assert c.row_blocks * rows >= 23 and c.tasks <= chunks
            assert c.tasks * c.task_blocks >= c.row_blocks > (c.tasks - 1) * c.task_blocks


def test_a_right_side_is_read_in_place_where_few_rows_share_it() -> None:
    few, many = (best_cuts(attention(12, rows, 128), HOST) for rows in (2, 128))
    assert not few["copy_values"] and many["copy_values"]
    assert few["copy_keys"]  # they have to be transposed


def test_seconds_count_copies_and_rows_that_are_computed_twice() -> None:
    w = attention(12, 128, 128)
    params = best_cuts(w, HOST)
    least = seconds(w, params, HOST)
    assert seconds(w, {**params, "copy_values": False}, HOST) < least
    assert seconds(w, {**params, "rows": 100}, HOST) > 1.3 * least
    assert seconds(attention(24, 128, 128), params, HOST) > 1.8 * least


def test_readable_sides_have_vectors_of_columns() -> None:
    view = StridedView.contiguous((2, 20, 16))
    assert attention_cuts.readable(view, 16)
    assert not attention_cuts.readable(view.permute((0, 2, 1)), 16)
    assert not attention_cuts.readable(view.slice(2, 0, 8), 16)
