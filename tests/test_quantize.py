"""Float models to int8: both forms, what is refused, and how close the result stays."""

import sys

import numpy as np
import onnx
import pytest

from benchmarks.integer_session import integer_session
from tests.codegen.quantized_cnns import images, quantized_model, small_cnn
from tests.models import two_inputs
from tvm_ext.codegen.errors import QuantizationError
from tvm_ext.errors import MissingPackageError, ModelError, OptionError
from tvm_ext.quantize import QuantizeOptions, quantize


def _types(model):
    return {node.op_type for node in model.graph.node}


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("activations", ["int8", "uint8"])
def test_quantised_models_are_close(form, activations):
    model = quantized_model(form, activations)
    assert ("QLinearConv" in _types(model)) == (form == "QOperator")
    assert "BatchNormalization" not in _types(model)
    float_session, quantized_session = integer_session(small_cnn()), integer_session(model)
    for x in images(4, seed=2):
        exact = float_session.run(None, {"x": x})[0]
        found = quantized_session.run(None, {"x": x})[0]
        assert np.abs(found - exact).max() < 0.1 * np.abs(exact).max()


def test_options_reach_the_weights():
    def scales(model):
        arrays = [onnx.numpy_helper.to_array(t) for t in model.graph.initializer]
        return [a.size for a in arrays if a.dtype == np.float32 and a.ndim == 1]

    assert 24 in scales(quantized_model("QDQ", "uint8", True))
    assert 24 not in scales(quantized_model("QDQ", "uint8", False))
    zeros = [
        onnx.numpy_helper.to_array(t)
        for t in quantized_model("QDQ", "uint8").graph.initializer
        if t.name.startswith("w") and t.name.endswith("zero_point")
    ]
    assert zeros and not any(z.any() for z in zeros)


def test_model_is_not_changed_and_files_are_read(tmp_path):
    model = small_cnn()
    before = model.SerializeToString(deterministic=True)
    from_memory = quantize(model, images(2))
    assert model.SerializeToString(deterministic=True) == before
    onnx.save(model, tmp_path / "m.onnx")
    from_file = quantize(tmp_path / "m.onnx", ({"x": x} for x in images(2)))
    x = {"x": images(1)[0]}
    np.testing.assert_array_equal(
        integer_session(from_memory).run(None, x)[0], integer_session(from_file).run(None, x)[0]
    )


def test_old_operator_sets_are_converted():
    model = small_cnn()
    model.opset_import[0].version = 11
    x = images(1)[0]
    found = integer_session(quantize(model, images(4))).run(None, {"x": x})[0]
    exact = integer_session(small_cnn()).run(None, {"x": x})[0]
    assert np.abs(found - exact).max() < 0.1 * np.abs(exact).max()


def test_quantised_model_is_returned():
    model = quantized_model("QOperator", "uint8", False)
    assert quantize(model) is model


def test_several_inputs_in_order():
    a, b = np.ones((2, 3), "float32"), np.zeros((2, 3), "float32")
    assert "QuantizeLinear" in _types(quantize(two_inputs(), [(a, b), {"b": a, "a": b}]))


X = images(1)[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "the model is float and there is no calibration data"),
        ([], "calibration_data is empty"),
        ([{"z": X}], r"sample 0 has inputs \['z'\]; the model has \['x'\]"),
        ([X, (X, X)], "sample 1 has 2 arrays"),
        ([X[:, :2]], r"float32 of shape \(1, 2, 17, 18\); allowed: float32 of shape \(1, 3, 17"),
        ([X.astype("float64")], "float64 of shape .* allowed: float32"),
        ([X * np.nan], "NaN or infinite"),
    ],
)
def test_refused_data(data, message):
    with pytest.raises(QuantizationError, match=message):
        quantize(small_cnn(), data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "TFLite"}, "form='TFLite'; allowed: QDQ, QOperator"),
        ({"activations": "int4"}, "activations='int4'; allowed: int8, uint8"),
        ({"weights": "uint8"}, "weights='uint8'; allowed: int8"),
        ({"calibration": "max"}, "calibration='max'; allowed: minmax, entropy, percentile"),
        ({"per_channel": 1}, "per_channel=1; allowed: True, False"),
    ],
)
def test_refused_options(options, message):
    with pytest.raises(OptionError, match=message):
        QuantizeOptions(**options)


def test_unreadable_file(tmp_path):
    with pytest.raises(ModelError, match="can't be read"):
        quantize(tmp_path / "none.onnx", images(1))


def test_without_onnxruntime(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'tvm_ext\[quantize\]'"):
        quantize(small_cnn(), images(1))
