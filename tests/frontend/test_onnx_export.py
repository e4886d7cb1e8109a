"""Models written as ONNX: ONNX Runtime must compute with them what it does with the originals."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests import models
from tests.frontend.cases import Case, normal, run_onnxruntime
from tvm_ext.errors import UnsupportedOperatorsError
from tvm_ext.frontend import load_model
from tvm_ext.frontend.onnx_export import OPSET, to_onnx

X, Y = normal(2, 4, 7, 6), normal(2, 4, 7, 6, seed=1)
VECTOR, VARIANCE = normal(4, seed=2), np.abs(normal(4, seed=3)) + 0.5
INTS = np.array([1, 0, 3])

CASES = [
    Case("conv", "Conv", [X, normal(6, 2, 3, 2), normal(6)],
         {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]}),
    Case("conv1d", "Conv", [X[:, :, 0], normal(6, 4, 3)]),
    Case("conv_transpose", "ConvTranspose", [X, normal(4, 3, 3, 3)],
         {"strides": [2, 2], "output_padding": [1, 0], "pads": [1, 1, 0, 1]}),
    Case("max_pool", "MaxPool", [X],
         {"kernel_shape": [3, 2], "dilations": [2, 1], "pads": [1] * 4}),
    Case("avg_pool", "AveragePool", [X],
         {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "count_include_pad": 1}),
    Case("lrn", "LRN", [X], {"size": 3, "alpha": 0.3, "bias": 1.5}),
    Case("batch_norm", "BatchNormalization", [X, VECTOR, VECTOR, VECTOR, VARIANCE]),
    Case("layer_norm", "LayerNormalization", [X, normal(7, 6), normal(7, 6)], {"axis": 2}),
    Case("softmax", "Softmax", [X], {"axis": 1}),
    Case("log_softmax", "LogSoftmax", [X], {"axis": -1}),
    Case("leaky", "LeakyRelu", [X], {"alpha": 0.3}),
    Case("prelu", "PRelu", [X, normal(4, 1, 1)]),
    Case("clip", "Clip", [X, np.array(-0.5, "float32"), np.array(1, "float32")]),
    Case("pad", "Pad", [X, np.array([0, 0, 1, 2, 0, 1, 0, 3]), np.array(2, "float32")]),
    Case("matmul", "MatMul", [X, normal(6, 5)]),
    Case("transpose", "Transpose", [X], {"perm": [0, 2, 3, 1]}),
    Case("reshape", "Reshape", [X, np.array([0, -1])]),
    Case("concat", "Concat", [X, Y], {"axis": 1}, runtime=(0, 1)),
    Case("split", "Split", [X, np.array([1, 3])], {"axis": 1}, outputs=2),
    Case("slice", "Slice", [X, np.array([-1, 1]), np.array([-9, 5]), np.array([1, 2]),
                            np.array([-2, 3])]),
    Case("gather", "Gather", [X, INTS], {"axis": 1}),
    Case("cast", "Cast", [X * 3], {"to": onnx.TensorProto.INT32}),
    Case("where", "Where", [X > 0, X, Y], runtime=(0, 1, 2)),
    Case("expand", "Expand", [X[:, :1], np.array([2, 4, 7, 6])]),
    Case("tile", "Tile", [X, np.array([1, 2, 1, 1])]),
    Case("reduce", "ReduceMean", [X, np.array([1, 2])], {"keepdims": 0}),
    Case("reduce_max", "ReduceMax", [X, np.array([3])]),
    Case("arg_max", "ArgMax", [X], {"axis": 1, "keepdims": 0}),
    Case("pow", "Pow", [np.abs(X), Y], runtime=(0, 1), rtol=1e-4),
    Case("tanh", "Tanh", [X]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_operator(case: Case) -> None:
    written = to_onnx(load_model(case.model()))
    for ours, theirs in zip(
        run_onnxruntime(written, case.feeds()),
        run_onnxruntime(case.model(), case.feeds()),
        strict=True,
    ):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=case.rtol, atol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float16", 2e-3)])
def test_rms_norm_is_written_out(dtype: str, tolerance: float) -> None:
    """Its operator is of a later opset; float16 numbers are squared in float32."""
    x, scale = 300 * X.astype(dtype), normal(7, 6, dtype=dtype)
    case = Case("rms", "RMSNormalization", [x, scale], {"axis": 2, "epsilon": 0.3}, opset=23)
    (found,) = run_onnxruntime(to_onnx(load_model(case.model())), case.feeds())
    wide = x.astype("float64")
    expected = wide / np.sqrt((wide**2).mean((2, 3), keepdims=True) + 0.3) * scale
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_network_keeps_its_ends_and_weights() -> None:
    model = models.convnet()
    written = to_onnx(load_model(model))
    assert [x.name for x in written.graph.input] == ["x"]
    assert [x.name for x in written.graph.output] == ["scores"]
    assert written.opset_import[0].version == OPSET
    sizes = sorted(numpy_helper.to_array(w).size for w in written.graph.initializer)
    assert sizes[-3:] == [16 * 27, 48 * 10, 32 * 16 * 9]
    x = normal(1, 3, 12, 12)
    np.testing.assert_allclose(
        run_onnxruntime(written, {"x": x})[0], run_onnxruntime(model, {"x": x})[0], rtol=1e-5
    )


def test_all_operators_that_onnx_lacks_are_listed() -> None:
    case = Case("resize", "Resize", [X, None, np.array([1, 1, 2, 2], "float32")])
    with pytest.raises(UnsupportedOperatorsError, match=r"image\.resize2d") as caught:
        to_onnx(load_model(case.model()))
    assert list(caught.value.nodes) == ["image.resize2d"]
    assert "write the model as .json" in str(caught.value)


def test_operators_behind_a_missing_one_are_listed_too() -> None:
    nodes = [
        onnx.helper.make_node("Resize", ["x", "", "scales"], ["large"]),
        onnx.helper.make_node("Relu", ["large"], ["positive"]),
        onnx.helper.make_node("CumSum", ["positive", "axis"], ["y"]),
    ]
    arrays = {"scales": np.array([1, 1, 2, 2], "float32"), "axis": np.array(1)}
    graph = onnx.helper.make_graph(
        nodes,
        "missing",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, X.shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(value, name) for name, value in arrays.items()],
    )
    opset = onnx.helper.make_opsetid("", 18)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=9)
    with pytest.raises(UnsupportedOperatorsError) as caught:
        to_onnx(load_model(model))
    assert list(caught.value.nodes) == ["image.resize2d", "cumsum"]
