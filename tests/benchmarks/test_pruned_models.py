"""Which weights of a model are pruned, and that files are made once."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from benchmarks import pruned_models, zoo
from benchmarks.magnitude import prune
from benchmarks.zoo.builder import GraphBuilder


def weight(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def network():
    """An image's convolution, an ordinary and a depthwise one, and a classifier."""
    graph = GraphBuilder("network")
    x = graph.conv("input", "first", weight(16, 3, 3, 3))
    x = graph.conv(x, "second", weight(32, 16, 1, 1))
    x = graph.conv(x, "depthwise", weight(32, 1, 3, 3), group=32)
    x = graph.classifier(x, "fc", weight(4, 32), np.zeros(4, np.float32))
    return graph.model({"input": np.zeros((1, 3, 9, 9), np.float32)}, x, (1, 4))


def recurrent():
    graph = GraphBuilder("recurrent")
    weights = [graph.weight("w", weight(1, 12, 5)), graph.weight("r", weight(1, 12, 3))]
    x = graph.op("LSTM", "input", *weights, hidden_size=3)
    return graph.model({"input": np.zeros((7, 1, 5), np.float32)}, x, (7, 1, 1, 3))


def densities(model):
    return {
        i.name: np.count_nonzero(numpy_helper.to_array(i)) / np.prod(i.dims)
        for i in model.graph.initializer
    }


def test_convolutions_but_the_images_are_pruned():
    model = network()
    pruned_models.prune_model(model, "unstructured", 0.25)
    left = {name: share for name, share in densities(model).items() if share not in (0, 1)}
    assert left == {"second.weight": 0.25, "depthwise.weight": 0.25}
    assert densities(model)["first.weight"] == densities(model)["fc.weight"] == 1
    got = next(i for i in model.graph.initializer if i.name == "second.weight")
    wanted = prune(weight(32, 16, 1, 1), "unstructured", 0.25)
    np.testing.assert_array_equal(numpy_helper.to_array(got), wanted)


def test_dense_layers_but_the_last_are_pruned():
    graph = GraphBuilder("perceptron")
    x = graph.dense("input", "hidden", weight(32, 20), np.zeros(32, np.float32))
    x = graph.dense(x, "last", weight(4, 32), np.zeros(4, np.float32))
    model = graph.model({"input": np.zeros((1, 20), np.float32)}, x, (1, 4))
    pruned_models.prune_model(model, "block16", 0.25)
    arrays = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    kept = arrays["hidden.weight"].reshape(2, 16, 20) != 0
    assert (kept == kept[:, :1]).all()
    assert (kept[:, 0].sum(axis=1) == 5).all()
    assert np.all(arrays["last.weight"])


def test_an_lstms_rows_are_its_filters():
    model = recurrent()
    pruned_models.prune_model(model, "block16", 0.4)
    arrays = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    assert arrays["w"].shape == (1, 12, 5)
    for name, columns in (("w", 2), ("r", 1)):
        kept = arrays[name][0] != 0
        assert (kept == kept[0]).all()
        assert kept[0].sum() == columns


def test_a_model_without_such_layers_is_refused():
    graph = GraphBuilder("dense")
    x = graph.dense("input", "fc", weight(4, 3), np.zeros(4, np.float32))
    model = graph.model({"input": np.zeros((1, 3), np.float32)}, x, (1, 4))
    with pytest.raises(ValueError, match="dense has no layer to prune"):
        pruned_models.prune_model(model, "block16", 0.5)


def test_a_file_is_made_once_beside_the_dense_one(monkeypatch, tmp_path):
    dense = tmp_path / "network-r3.onnx"
    onnx.save(network(), dense)
    monkeypatch.setattr(zoo, "path", lambda name: dense)
    path = pruned_models.path("network", "block16", 0.25)
    assert path.parent == tmp_path
    assert path.name.startswith("network-r3-block16-0.25-")
    stamp = path.stat().st_mtime_ns
    assert pruned_models.path("network", "block16", 0.25) == path
    assert path.stat().st_mtime_ns == stamp
    assert densities(onnx.load(path))["second.weight"] == 0.25
    assert densities(onnx.load(dense))["second.weight"] == 1
