"""The zoo's cache, SqueezeNet from end to end, and real weights where they are installed."""

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from benchmarks import zoo
from benchmarks.zoo.__main__ import main
from benchmarks.zoo.activations import activations
from benchmarks.zoo.efficientnet_lite import preprocess, same_pads
from benchmarks.zoo.recipe import MissingPackageError, package_file

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """An empty cache that the tests of this file share."""
    folder = tmp_path_factory.mktemp("zoo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TVM_EXT_ZOO", str(folder))
        yield folder


def run(name, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(zoo.path(name), options)
    return session.run(None, inputs)[0]


def test_squeezenet_is_made_once_and_valid(cache):
    path = zoo.path("squeezenet")
    stamp = path.stat().st_mtime_ns
    assert zoo.path("squeezenet") == path
    assert path.stat().st_mtime_ns == stamp
    assert [p.name for p in cache.iterdir() if p.name.startswith(".")] == []
    onnx.checker.check_model(str(path), full_check=True)


def test_squeezenet_is_alive(cache):
    found = activations(zoo.path("squeezenet"), zoo.sample_inputs("squeezenet"))
    assert len(found) == 66
    for activation in found:
        assert np.isfinite(activation.largest), activation
        if activation.op_type != "Softmax":
            assert 1e-2 < activation.std < 1e2, activation
    output = run("squeezenet", zoo.sample_inputs("squeezenet"))
    assert output.shape == (1, 1000, 1, 1)
    # A uniform answer would be 1e-3 everywhere.
    assert output.max() > 1e-2


def test_sample_inputs_are_seeded_and_match_the_model(cache):
    graph = onnx.load(zoo.path("squeezenet")).graph
    (declared,) = graph.input
    (item,) = zoo.sample_inputs("squeezenet").items()
    shape = tuple(dim.dim_value for dim in declared.type.tensor_type.shape.dim)
    assert item[0] == declared.name
    assert (item[1].shape, item[1].dtype) == (shape, np.float32)
    again, other = (zoo.sample_inputs("squeezenet", seed)[item[0]] for seed in (0, 1))
    np.testing.assert_array_equal(item[1], again)
    assert not np.array_equal(again, other)


def test_unknown_model_lists_those_there_are():
    with pytest.raises(KeyError, match=r"no model 'lenet' in the zoo; there are: .*squeezenet"):
        zoo.path("lenet")


def test_missing_package_says_what_to_run():
    with pytest.raises(MissingPackageError, match=r"run: pip install tvm_ext\[bench\]"):
        package_file("no-such-distribution", "x.onnx", "pip install tvm_ext[bench]")
    with pytest.raises(MissingPackageError, match=r"no file ending in 'x\.onnx'"):
        package_file("numpy", "x.onnx", "pip install numpy")


def test_command_line():
    listed = CliRunner().invoke(main, ["--list"])
    names = [line.split()[0] for line in listed.output.splitlines()]
    assert names == [*zoo.NAMES, *zoo.FUSION_MODELS, *zoo.SPARSE_MODELS]
    wrong = CliRunner().invoke(main, ["lenet"])
    assert wrong.exit_code == 2
    assert "no model 'lenet'" in wrong.output


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pads"),
    [
        (224, 3, 2, (0, 1)),
        (56, 5, 2, (1, 2)),
        (7, 3, 1, (1, 1)),
        (15, 3, 2, (1, 1)),
        (8, 1, 2, (0, 0)),
    ],
)
def test_same_pads_by_hand(size, kernel, stride, pads):
    assert same_pads(size, kernel, stride) == pads


def test_efficientnet_sees_the_cat(cache):
    data = pytest.importorskip("skimage.data")
    try:
        zoo.path("efficientnet_lite0")
    except MissingPackageError as error:
        pytest.skip(str(error))
    logits = run("efficientnet_lite0", {"input": preprocess(data.chelsea())})[0]
    best_three = set(np.argsort(logits)[-3:].tolist())
    # ImageNet's house cats: tabby, tiger cat, Persian, Siamese, Egyptian.
    assert best_three <= {281, 282, 283, 284, 285}
