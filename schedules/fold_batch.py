"""A matrix product under the fewest batch dimensions that the strides of its views allow."""

from __future__ import annotations

from dataclasses import replace

from tvm_ext.schedules.matmul_workload import MatmulWorkload


def fold_batch(w: MatmulWorkload) -> MatmulWorkload:
    """The same product in the same order; its epilogue still belongs to the shape of `w.out`.

    Batch dimensions that share one right side become rows, as long as one stride walks the rows of
    the left side and one those of the result. Of the others neighbours become one, where a single
    stride walks them in each of the three views.
    """
    return _merge_neighbours(_stack_rows(w))


def _stack_rows(w: MatmulWorkload) -> MatmulWorkload:
    if not w.batch or (w.batch[-1] != 1 and w.rhs.strides[-3] != 0):
        return w
    *lead, count = w.batch
    lhs = w.lhs.reshape((*lead, count * w.m, w.k))
    out = w.out.reshape((*lead, count * w.m, w.n))
    rhs = w.rhs.slice(len(lead), 0, 1).reshape((*lead, w.k, w.n))
    if lhs is None or rhs is None or out is None:
        return w
    return _stack_rows(replace(w, lhs=lhs, rhs=rhs, out=out))


def _merge_neighbours(w: MatmulWorkload) -> MatmulWorkload:
    for axis in range(len(w.batch) - 1):
        first, second = w.batch[axis : axis + 2]
        lead = (*w.batch[:axis], first * second, *w.batch[axis + 2 :])
        lhs, rhs, out = (v.reshape((*lead, *v.shape[-2:])) for v in (w.lhs, w.rhs, w.out))
        if lhs is not None and rhs is not None and out is not None:
            return _merge_neighbours(replace(w, lhs=lhs, rhs=rhs, out=out))
    return w
