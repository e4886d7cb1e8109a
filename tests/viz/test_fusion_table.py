"""The table of what fusion saves, on a graph that can be counted by hand."""

import numpy as np
from tvm.relax import op

from tests.passes.relax_models import array, const, module
from tvm_ext import tables
from tvm_ext.viz import fusion_table


def test_rows_by_hand():
    """A product, a bias, a division that goes into both, an activation; 400 x 800 floats."""

    def body(emit, x):
        y = emit(op.add(emit(op.matmul(x, const(array(0, 6, 800)))), const(array(1, 800))))
        scaled = emit(op.nn.relu(emit(op.divide(y, const(np.float32(3))))))
        return op.reshape(emit(op.matmul(scaled, const(array(2, 800, 800)))), (800, 400))

    text = tables.render(fusion_table(module({"x": (400, 6)}, body)))
    rows = [line.split("│")[1:-1] for line in text.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in row] for row in rows]
    one = 400 * 800 * 4 / 1e6
    assert cells == [
        ["as loaded", "6", "5", f"{4 * one:.3f}"],
        ["rewritten", "5", "4", f"{3 * one:.3f}"],
        ["fused", "5", "2", f"{one:.3f}"],
    ]
