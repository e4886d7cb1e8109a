"""Matrix products of tensors and of views of them: shapes, work and traffic, worked by hand."""

from __future__ import annotations

from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView


def test_shapes_and_work() -> None:
    bias = Epilogue((Step("add", (("value", 0), ("operand", 0))),), (Operand((10,), "float32"),))
    w = MatmulWorkload.of((2, 3, 4, 6), (2, 3, 6, 10), epilogue=bias)
    assert (w.batch, w.m, w.n, w.k, w.out_shape) == ((2, 3), 4, 10, 6, (2, 3, 4, 10))
    assert w.macs == 6 * 4 * 10 * 6
    assert w.flops == 2 * w.macs + 6 * 4 * 10
    assert w.weight_bytes == 4 * 6 * 6 * 10
    assert w.bytes == 4 * (6 * 4 * 10 + 6 * 4 * 6) + w.weight_bytes + 40


def test_broadcast_operands_are_read_once() -> None:
    w = MatmulWorkload.of((3, 1, 4, 6), (2, 6, 10))
    assert (w.batch, w.out_shape) == ((3, 2), (3, 2, 4, 10))
    assert w.lhs == StridedView((3, 2, 4, 6), (24, 0, 6, 1))
    assert w.rhs == StridedView((3, 2, 6, 10), (0, 60, 10, 1))
    assert w.weight_bytes == 4 * 2 * 60
    assert w.bytes == 4 * (3 * 24 + 6 * 40) + w.weight_bytes


def test_views_touch_their_own_elements_only() -> None:
    """The two products of attention with 2 heads of 8 and 5 tokens."""
    whole = StridedView.contiguous((1, 5, 48))
    q, k, v = (
        part.permute((0, 2, 1, 3))
        for i in range(3)
        if (part := whole.slice(2, 16 * i, 16).reshape((1, 5, 2, 8))) is not None
    )
    scores = MatmulWorkload.of((1, 5, 48), (1, 5, 48), lhs=q, rhs=k.permute((0, 1, 3, 2)))
    assert (scores.rhs.strides[1:], scores.rhs.offset) == ((8, 1, 48), 16)
    assert scores.out_shape == (1, 2, 5, 5)
    assert scores.bytes == 4 * 2 * (40 + 40 + 25)
    out = StridedView.contiguous((1, 5, 2, 8)).permute((0, 2, 1, 3))
    result = MatmulWorkload.of((1, 2, 5, 5), (1, 5, 48), (1, 5, 16), rhs=v, out=out)
    assert (result.batch, result.m, result.n, result.k) == ((1, 2), 5, 8, 5)
    assert (result.out, result.out_shape) == (out, (1, 5, 16))
    assert result.bytes == scores.bytes
