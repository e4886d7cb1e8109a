"""The blocks' shapes, and an LSTM of a smaller size against NumPy in float64."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from benchmarks import zoo
from benchmarks.zoo import tiramisu
from benchmarks.zoo.activations import activations

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TVM_EXT_ZOO", str(tmp_path))


def run(name, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(zoo.path(name), options).run(None, inputs)[0]


def test_the_residual_block_is_alive(cache):
    inputs = zoo.sample_inputs("resnet_block")
    assert run("resnet_block", inputs).shape == (1, 32, 16, 16)
    for activation in activations(zoo.path("resnet_block"), inputs):
        assert 0.1 < activation.std < 10, activation


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_a_small_lstm_matches_numpy(cache, monkeypatch):
    for name, value in (("_LAYERS", 2), ("_STEPS", 5), ("_HIDDEN", 8)):
        monkeypatch.setattr(tiramisu, name, value)
    inputs = zoo.sample_inputs("seq2seq_lstm")
    x = inputs["input"].astype("f8")
    assert x.shape == (5, 1, 8)
    model = onnx.load(zoo.path("seq2seq_lstm"))
    arrays = {i.name: numpy_helper.to_array(i).astype("f8") for i in model.graph.initializer}
    for layer in range(2):
        w, r, b = (arrays[f"lstm{layer}.{part}"][0] for part in "WRB")
        h = c = np.zeros((1, 8))
        steps = []
        for step in x:
            gates = step @ w.T + h @ r.T + b[:32] + b[32:]
            i, o, f, candidate = np.split(gates, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)
            h = sigmoid(o) * np.tanh(c)
            steps.append(h)
        x = np.stack(steps)
    np.testing.assert_allclose(run("seq2seq_lstm", inputs), x, rtol=1e-4, atol=1e-5)
    assert x.std() > 0.02
