"""Calibration of a small network, against statistics that numpy computes."""

import numpy as np
import onnx
import pytest

from benchmarks.zoo.activations import activations
from benchmarks.zoo.builder import GraphBuilder
from benchmarks.zoo.calibrate import calibrate

onnxruntime = pytest.importorskip("onnxruntime")

SAMPLE = {"input": np.random.default_rng(0).normal(3.0, 5.0, (1, 3, 9, 9)).astype(np.float32)}


def network(shared=False):
    """Two convolutions, the first with batch norm, the second with bias, and a classifier."""
    rng = np.random.default_rng(1)

    def draw(*shape):
        return rng.normal(0.0, 20.0, shape).astype(np.float32)

    graph = GraphBuilder("small")
    x = graph.conv("input", "conv1", draw(4, 3, 3, 3), pads=(1, 1))
    scale, bias = np.full(4, 0.5, np.float32), np.full(4, 0.25, np.float32)
    norm = [scale, bias, np.zeros(4, np.float32), np.ones(4, np.float32)]
    x = graph.relu(graph.batch_norm(x, "bn", norm))
    weight = graph.weight("conv2.weight", draw(5, 4, 3, 3))
    if shared:
        x = graph.op(
            "Conv", graph.op("Conv", x, "square"), graph.weight("square", draw(4, 4, 3, 3))
        )
    shift = graph.weight("conv2.bias", np.arange(5, dtype=np.float32))
    x = graph.op("Conv", x, weight, shift, name="conv2", pads=[1, 1, 1, 1])
    x = graph.classifier(graph.relu(x), "fc", draw(50, 5), np.zeros(50, np.float32))
    return graph.model(SAMPLE, x, (1, 50))


def outputs(model, names):
    model = onnx.ModelProto.FromString(model.SerializeToString())
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in names)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["output", *names], SAMPLE)


def test_every_layer_gets_the_statistics_asked_for():
    model = calibrate(network(), SAMPLE, logits_std=2.0)
    onnx.checker.check_model(model, full_check=True)
    logits, norm, conv2 = outputs(model, ["bn_output", "conv2_output"])
    np.testing.assert_allclose(norm.mean((0, 2, 3)), 0.25, atol=1e-3)
    np.testing.assert_allclose(norm.std((0, 2, 3)), 0.5, rtol=1e-3)
    # The bias puts the mean, the layer's own bias stays on top.
    np.testing.assert_allclose(conv2.mean((0, 2, 3)), np.arange(5), atol=1e-3)
    np.testing.assert_allclose(conv2.std((0, 2, 3)), 1.0, rtol=1e-3)
    assert logits.std() == pytest.approx(2.0, rel=1e-3)


def test_shared_weights_are_refused():
    with pytest.raises(ValueError, match="weight 'square' is shared by two layers"):
        calibrate(network(shared=True), SAMPLE)


def test_activations_describe_every_float_tensor(tmp_path):
    path = tmp_path / "small.onnx"
    onnx.save(network(), path)
    found = {a.name: a for a in activations(path, SAMPLE)}
    assert len(found) == 8
    (expected,) = outputs(onnx.load(path), [])
    assert found["output"].op_type == "Gemm"
    assert found["output"].std == pytest.approx(expected.std(), rel=1e-5)
    assert found["output"].largest == pytest.approx(np.abs(expected).max(), rel=1e-6)
