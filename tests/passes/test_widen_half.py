"""Float16 operators that accumulate do it in float32."""

import numpy as np
import pytest
from relax_models import const, module, ops
from tvm import relax

import tvm_ext
from tests import models
from tvm_ext.layers import layers
from tvm_ext.passes import WidenHalf
from tvm_ext.pipeline import graph_pipeline

LONG = np.full((3, 4096), 40.0, "float16")
MAP = np.full((1, 2, 64, 64), 40.0, "float16")


def test_operands_and_result_are_converted():
    w = np.ones((8, 5), "float16")

    def body(emit, x):
        return relax.op.matmul(emit(relax.op.tanh(x)), const(w))

    mod = WidenHalf()(module({"x": (4, 8)}, body, dtype="float16"))
    assert ops(mod) == ["tanh", "astype", "matmul", "astype"]
    assert str(mod["main"].ret_ty.dtype) == "float16"


def test_other_types_stay():
    def body(emit, x):
        return relax.op.sum(x, axis=[1])

    for dtype in ("float32", "int32"):
        mod = module({"x": (4, 8)}, body, dtype=dtype)
        assert ops(WidenHalf()(mod)) == ["sum"]


def test_the_kernels_are_ours():
    def body(emit, x):
        w = np.ones((16, 8, 3, 3), "float16")
        return relax.op.nn.relu(emit(relax.op.nn.conv2d(x, const(w), padding=1)))

    found = layers(graph_pipeline()(module({"x": (1, 8, 9, 9)}, body, dtype="float16")))
    assert [layer.fallback for layer in found] == [""] * len(found)


@pytest.mark.parametrize(
    ("op", "attributes", "x"),
    [
        ("ReduceMean", {}, LONG), ("ReduceSum", {}, LONG / 64), ("ReduceL2", {}, LONG),
        ("ReduceLogSumExp", {}, LONG), ("Softmax", {}, LONG), ("GlobalAveragePool", {}, MAP),
        ("AveragePool", {"kernel_shape": [64, 64]}, MAP), ("MatMul", {}, LONG / 64),
    ],
)  # fmt: skip
def test_long_sums_neither_stop_nor_overflow(op, attributes, x):
    weights = {"axis": np.array([1]), "w": np.full((4096, 3), 0.25, "float16")}
    second = {"MatMul": ["w"], **{f"Reduce{n}": ["axis"] for n in ("Mean", "Sum", "L2")}}
    second["ReduceLogSumExp"] = ["axis"]
    model = models.operators([(op, ["x", *second.get(op, [])], attributes)], {"x": x}, weights)
    got = tvm_ext.build(model)(x)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, models.oracle(model, {"x": x})[0], rtol=2e-3)
