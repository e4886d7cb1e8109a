"""The frame of products' kernels, with a right side that is read in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tvm

from tests.schedules import oracles
from tests.schedules.kernels import HOST
from tests.schedules.strided import seen, stored
from tvm_ext.schedules import emit
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.gemm import Blocking
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_product import PanelOf, emit_product, has_rows
from tvm_ext.schedules.strided_view import StridedView

V = HOST.lanes


def test_left_side_and_result_are_strided_and_operands_follow_the_product() -> None:
    """Two batch dimensions that don't fold; the right side's panels are vectors of one tensor."""
    batch, m, k = (2, 3), 5, 4
    lhs = StridedView.contiguous((2, m, 3, k)).permute((0, 2, 1, 3))
    out = StridedView.contiguous((m, 2, 3, V)).permute((1, 2, 0, 3))
    epilogue = oracles.residual_epilogue(Operand((3, 1, V), "float32"), (*batch, m, V))
    w = MatmulWorkload.of(
        (2, m, 3 * k), (2, 3, k, V), (m, 6 * V), lhs=lhs, out=out, epilogue=epilogue
    )
    b = Blocking(m, V, k, V, blocks=1, tile=2, chunks=2)
    fetched = []

    def panels(right: Any, at: Sequence[Any]) -> PanelOf:
        def read(step: Any, lane: Any) -> Any:
            return right[((at[0] * 3 + at[1]) * k + step) * V + lane]

        return lambda panel, base: lambda step, c, i: read(base + step, i)

    def fetch(right: Any, panel: Any, base: Any, element: Any) -> None:
        fetched.append(element)
        emit.prefetch(right, [element], 2)

    function = emit.build(lambda: emit_product(w, b, w.rhs_shape, panels, fetch))
    module = tvm.compile(tvm.IRModule({"main": function}), target=HOST.tvm).mod
    left, right = oracles.random(w.lhs_shape, 1), oracles.random(w.rhs_shape, 2)
    operands = oracles.operands_of(w)
    tensors = [tvm.runtime.tensor(x) for x in (left, right, *operands)]
    got = tvm.runtime.tensor(np.full(w.out_shape, np.nan, "float32"))
    module["main"](*tensors, got)
    result = seen(left, lhs).astype("float64") @ right
    want = stored(oracles.finished(result, w, operands), w)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
    assert fetched


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (StridedView.contiguous((3, 4)), ""),
        (StridedView((3, 4), (9, 1), 2), ""),
        (StridedView((3, 1), (9, 5)), ""),
        (StridedView((3, 4), (1, 3)), "the thing's last stride is 3; only 1"),
        (StridedView((3, 4), (4, -1)), "the thing's last stride is -1; only 1"),
    ],
)
def test_rows_have_their_elements_side_by_side(view: StridedView, reason: str) -> None:
    assert has_rows(view, "thing").reason == reason
