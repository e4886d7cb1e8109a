"""The kernel of a matrix product of strided views, but for how it gets at its right side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit, gemm
from tvm_ext.schedules.base import YES, Support, refuse
from tvm_ext.schedules.emit_epilogue import declare_operands, rowwise_epilogue
from tvm_ext.schedules.fold_batch import fold_batch
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.workload import Shape

# Of a panel and the first step of a part, as `gemm.emit_task` calls it.
PanelOf = Callable[[Any, Any], gemm.Right]


def has_rows(view: StridedView, name: str) -> Support:
    """Whether the elements of each of a view's rows are side by side."""
    if view.shape[-1] > 1 and view.strides[-1] != 1:
        return refuse(f"the {name}'s last stride is {view.strides[-1]}; only 1")
    return YES


def reads_all_rows(w: MatmulWorkload) -> Support:
    """Whether the left side is all rows of a tensor that another stage makes, in order."""
    part = "the left side is a part of what its producer makes"
    return _is_all_rows(w.lhs, w.lhs_shape, part, "the left side")


def stores_all_rows(w: MatmulWorkload) -> Support:
    """Whether the result is all rows of a tensor that another stage reads, in order."""
    part = "the product stores a part of what its reader reads"
    return _is_all_rows(w.out, w.out_shape, part, "a product")


def _is_all_rows(view: StridedView, shape: Shape, part: str, name: str) -> Support:
    if not view.is_contiguous or view.offset or prod(view.shape) != prod(shape):
        return refuse(f"{part}, or in another order")
    columns = view.shape[-1]
    if shape[-1] != columns:
        return refuse(f"{name} of {columns} columns isn't rows of {shape}")
    return YES


def emit_product(
    w: MatmulWorkload,
    b: gemm.Blocking,
    right_shape: Shape,
    panels: Callable[[Any, Sequence[Any]], PanelOf],
    fetch: Callable[[Any, Any, Any, Any], None] | None = None,
) -> None:
    """Declare the arguments and emit the parallel tasks.

    Parameters
    ----------
    b
        The cuts of the folded product.
    right_shape
        Of the argument that holds the right side.
    panels
        Called in each task for that argument's elements in a row, and the indices of the folded
        batch dimensions.
    fetch
        `fetch` of `gemm.emit_task`, called with the right side's elements first.
    """
    f = fold_batch(w)
    shapes = (w.lhs_shape, right_shape, w.out_shape)
    left, right = emit.argument("left", shapes[0]), emit.argument("right", shapes[1])
    operands = declare_operands(w.epilogue, 0)
    out = emit.argument("out", shapes[2])
    left, right, out = (
        emit.view(x, (prod(shape),)) for x, shape in zip((left, right, out), shapes, strict=True)
    )
    finish = rowwise_epilogue(w.epilogue, operands, w.out.shape)

    with emit.parallel_tasks(*f.batch, *b.tasks) as (*batch, chunk, piece):

        def store(row: Any, column0: Any, c: Any, i: Any, value: tirx.Expr) -> None:
            column = column0 + c * b.lanes + i
            at = emit.flat_index((*batch, row), (*f.batch, f.m))
            T.buffer_store(out, finish(at, column, value), [f.out.index((*batch, row, column))])

        gemm.emit_task(
            b, chunk, piece,
            lambda row, step: left[f.lhs.index((*batch, row, step))],
            panels(right, batch),
            store,
            fetch and (lambda *line: fetch(right, *line)),
        )  # fmt: skip
