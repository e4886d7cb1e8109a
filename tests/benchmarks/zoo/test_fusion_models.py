"""The fusion models, made small: their graphs, their numbers, and tvm_ext on them."""

import numpy as np
import onnx
import pytest

import tvm_ext
from benchmarks import zoo
from benchmarks.accuracy import max_relative_error
from benchmarks.zoo import c3d, detector, gpt2, vit
from benchmarks.zoo.activations import activations

onnxruntime = pytest.importorskip("onnxruntime")

GPT2 = gpt2.Size(layers=1, hidden=32, heads=4, sequence=12, vocabulary=50)
VIT = vit.Size(layers=1, hidden=32, heads=4, image=32, patch=16, classes=10)
DETECTOR = detector.Size(image=64, width=4, classes=3)
C3D = c3d.Size(frames=4, image=28, stages=((4,), (6,), (8, 8)), units=16, classes=10)
SMALL = {
    "gpt2": (lambda: gpt2.build(GPT2), lambda rng: gpt2.tokens(GPT2, rng)),
    "vit": (lambda: vit.build(VIT), lambda rng: vit.images(VIT, rng)),
    "detector": (lambda: detector.build(DETECTOR), lambda rng: detector.images(DETECTOR, rng)),
    "c3d": (lambda: c3d.build(C3D), lambda rng: c3d.clips(C3D, rng)),
}


@pytest.fixture(scope="module")
def models():
    return {name: build() for name, (build, _) in SMALL.items()}


def inputs(name, seed=0):
    return SMALL[name][1](np.random.default_rng(seed))


def run(model, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)[0]


def operators(model):
    return {node.op_type for node in model.graph.node}


def test_they_are_reachable_but_no_default():
    assert zoo.FUSION_MODELS == ("gpt2", "vit_b16", "detector", "c3d")
    assert not set(zoo.FUSION_MODELS) & set(zoo.NAMES)
    assert len(zoo.NAMES) == 16
    shapes = {
        name: [x.shape for x in zoo.sample_inputs(name).values()] for name in zoo.FUSION_MODELS
    }
    assert shapes == {
        "gpt2": [(1, 128)],
        "vit_b16": [(1, 3, 224, 224)],
        "detector": [(1, 3, 320, 320)],
        "c3d": [(1, 3, 16, 112, 112)],
    }


@pytest.mark.parametrize("name", SMALL)
def test_valid_deterministic_and_alive(models, name, tmp_path):
    model, path = models[name], tmp_path / "small.onnx"
    onnx.checker.check_model(model, full_check=True)
    assert SMALL[name][0]() == model
    onnx.save(model, path)
    for found in activations(path, inputs(name)):
        assert np.isfinite(found.largest), found
        # A masked score is the lowest float; scores are large until they are scaled.
        assert found.op_type == "Where" or found.largest < 100, found
    first, second = (run(model, inputs(name, seed)) for seed in (0, 1))
    # A network that forgets its input would hide errors.
    assert np.abs(first - second).max() > 0.1 * np.abs(first).max()


def assert_tvm_ext_agrees_with_onnx_runtime(model, inputs):
    assert max_relative_error(tvm_ext.build(model)(inputs), run(model, inputs)) < 1e-4


@pytest.mark.parametrize("name", ["gpt2", "vit", "c3d"])
def test_tvm_ext_agrees_with_onnx_runtime(models, name):
    assert_tvm_ext_agrees_with_onnx_runtime(models[name], inputs(name))


def test_tvm_ext_agrees_on_a_level_of_the_detector():
    """Upsampling, branches and decoding; the backbone is convolutions, which compile slowly."""
    net = detector._Network(DETECTOR)
    # As many channels as the branches have: equal layers share a kernel.
    cells, channels = DETECTOR.image // 8, 4 * DETECTOR.width
    net.channels["input"] = channels
    x = net.head(net.upsample("input"), 0)
    shape = (1, channels, cells // 2, cells // 2)
    sample = {"input": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
    model = net.graph.model(sample, x, (1, 3 * cells**2, 5 + DETECTOR.classes))
    assert_tvm_ext_agrees_with_onnx_runtime(model, sample)


def test_gpt2_sees_no_later_token(models):
    x = inputs("gpt2")
    changed = {"input_ids": x["input_ids"].copy()}
    changed["input_ids"][0, 7] = (changed["input_ids"][0, 7] + 1) % GPT2.vocabulary
    before, after = run(models["gpt2"], x)[0], run(models["gpt2"], changed)[0]
    np.testing.assert_array_equal(after[:7], before[:7])
    assert (np.abs(after[7:] - before[7:]).max(axis=-1) > 1e-3).all()


def test_transformers_hold_primitive_operators(models):
    assert {"Tanh", "Pow", "Where", "Split", "ReduceMean", "Sqrt"} <= operators(models["gpt2"])
    assert {"Erf", "LayerNormalization", "Split", "Softmax"} <= operators(models["vit"])
    for name in ("gpt2", "vit"):
        assert not operators(models[name]) & {"Gelu", "Attention", "MultiHeadAttention"}


def test_detector_decodes_boxes(models):
    """Against the decoding in numpy, from the sigmoids of each level."""
    model = onnx.ModelProto.FromString(models["detector"].SerializeToString())
    scores = [
        node.output[0]
        for node in model.graph.node
        if node.op_type == "Sigmoid" and node.input[0].startswith("Concat")
    ]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in scores)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    boxes, *levels = session.run(["output", *scores], inputs("detector"))
    expected = []
    for level, (stride, anchors) in zip(levels, detector._ANCHORS, strict=True):
        for anchor, by_cell in zip(anchors, level[0], strict=True):
            for row, column in np.ndindex(by_cell.shape[:2]):
                x, y, width, height, *rest = by_cell[row, column].astype(float)
                expected.append(
                    [
                        (column + 2 * x - 0.5) * stride / DETECTOR.image,
                        (row + 2 * y - 0.5) * stride / DETECTOR.image,
                        4 * width**2 * anchor[0] / 640,
                        4 * height**2 * anchor[1] / 640,
                        *rest,
                    ]
                )
    np.testing.assert_allclose(boxes[0], expected, rtol=1e-5, atol=1e-6)
