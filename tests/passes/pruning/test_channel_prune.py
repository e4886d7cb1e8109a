"""ChannelPrune against the same networks whose least channels are zeros, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

from tests.passes.pruning.channel_build import Weights, pruned
from tests.passes.pruning.channel_evaluation import evaluate
from tests.passes.pruning.channel_networks import NETWORKS
from tests.passes.relax_models import array, const, module, ops, run
from tvm_ext.errors import OptionError, PruningError
from tvm_ext.passes import FoldConstants
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.pruning import ChannelPrune
from tvm_ext.pipeline import graph_pipeline

BY_NAME = {network.name: network for network in NETWORKS}


def sizes(mod: tvm.IRModule) -> dict[str, tuple[int, ...]]:
    """The shapes of values by name."""
    pairs = df.bindings(mod["main"])
    return {v.name: df.shape_of(v) for v, _ in pairs if isinstance(v.ty, relax.TensorType)}


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_the_same_as_with_zeros(network, norm):
    weights = Weights()
    dense = network.module(weights)
    new = ChannelPrune(0.5, norm, multiple=1, exclude=())(dense)
    x = array(5, *network.shape)
    zeroed = network.zeroed(weights, int(norm[1]))
    np.testing.assert_allclose(
        evaluate(new, x), evaluate(network.module(zeroed), x), rtol=1e-9, atol=1e-9
    )
    # Half of every set of filters is gone.
    lost: dict[str, int] = {}
    for members, count in network.sets:
        for name, _ in members:
            lost[name] = lost.get(name, 0) + count
    for name, count in lost.items():
        dense_layer = weights.arrays[name].ndim == 2
        before, after = (sizes(m)[name][-1 if dense_layer else 1] for m in (dense, new))
        assert after == before - count, name


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_behind_the_graph_passes(network):
    """Names and operators have changed, what is pruned is the same kind of channels."""
    weights = Weights()
    mod = graph_pipeline(tvm.transform.Sequential([]))(network.module(weights))
    prune = ChannelPrune(0.5, multiple=1, exclude=())
    new = prune(mod)
    x = array(5, *network.shape)
    assert evaluate(new, x).shape == evaluate(mod, x).shape
    assert prune.report.macs_density < 0.75


@pytest.mark.parametrize("name", ["shufflenet", "mobilenet", "resnext"])
def test_compiled(name):
    """TVM compiles the result: attributes and shapes are those of the operators."""
    network, weights = BY_NAME[name], Weights()
    new = tvm.transform.Sequential([ChannelPrune(0.5, multiple=1, exclude=())])(
        network.module(weights)
    )
    x = array(5, *network.shape)
    np.testing.assert_allclose(run(new, x), evaluate(new, x), rtol=1e-4, atol=1e-4)


def test_what_is_left_of_a_small_network():
    """Convolution, bias, ReLU, pool, and a dense layer on the flattened result."""
    new, report, _ = pruned(BY_NAME["flatten"].body)
    assert ops(new) == [
        "nn.conv2d", "add", "nn.relu", "nn.max_pool2d", "reshape", "matmul", "add", "nn.relu",
        "matmul", "add",
    ]  # fmt: skip
    shapes = [df.shape_of(v) for v, _ in df.bindings(new["main"])]
    assert shapes[:5] == [(1, 4, 6, 6)] * 3 + [(1, 4, 3, 3), (1, 36)]
    assert shapes[5:] == [(1, 5)] * 3 + [(1, 4)] * 2
    assert [(x.name, x.filters, x.inputs) for x in report.layers] == [
        ("a", 4, 3), ("b", 5, 36), ("c", 4, 5)
    ]  # fmt: skip
    assert report["c"].note == "an output of the model has them"


def test_a_shuffle_stays_one_where_its_channels_can_be_tied():
    new, _, _ = pruned(BY_NAME["shufflenet"].body)
    assert ops(new).count("permute_dims") == 2
    assert "take" not in ops(new)


def test_shuffles_that_would_tie_all_channels_become_gathers():
    new, _, _ = pruned(BY_NAME["three shuffles"].body)
    assert ops(new).count("take") == 3
    assert "permute_dims" not in ops(new)


def test_density_one_changes_nothing():
    for network in NETWORKS:
        mod = network.module(Weights())
        folded = tvm.transform.Sequential([FoldConstants(), relax.transform.CanonicalizeBindings()])
        new = ChannelPrune(1.0, exclude=())(mod)
        tvm.ir.assert_structural_equal(folded(mod), new, map_free_vars=True)


def test_pruning_again_prunes_what_is_left():
    network = BY_NAME["shufflenet"]
    once = ChannelPrune(0.5, multiple=1, exclude=())(network.module(Weights()))
    twice = ChannelPrune(0.5, multiple=1, exclude=())(once)
    x = array(5, *network.shape)
    assert evaluate(twice, x).shape == (1, 5)
    assert sizes(twice)["a"][1] == 4


@pytest.mark.parametrize(
    ("density", "multiple", "left"),
    [(0.5, 8, 16), (0.51, 8, 24), (0.26, 4, 12), (0.01, 1, 1), (0.01, 8, 8), (0.9, 32, 32)],
)
def test_channels_are_rounded_up(density, multiple, left):
    def body(b, x):
        return b.head(b.relu(b.conv("a", x, 32)))

    new, _, _ = pruned(body, density=density, multiple=multiple)
    assert sizes(new)["a"] == (1, left, 6, 6)


def test_the_last_channels_of_a_part_of_a_split_stay():
    """All channels of the first half weigh less than those of the second one."""

    def body(b, x):
        weights = b.weights.arrays.setdefault("a", array(0, 8, 3, 1, 1))
        weights[:4] *= 0.01
        left, right = b.halves(b.conv("a", x, 8))
        return b.head(b.concat(b.relu(left), b.conv("b", right, 4)))

    new, _, mod = pruned(body)
    parts = [e for _, e in df.bindings(new["main"]) if df.op_name(e) == "relax.split"]
    assert [int(i) for i in parts[0].attrs.indices_or_sections] == [1]
    assert sizes(new)["a"] == (1, 4, 6, 6)
    x = array(5, 1, 3, 6, 6)
    assert evaluate(new, x).shape == evaluate(mod, x).shape


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, {"a": 4, "b": 6, "c": 3}),
        ({"exclude": None}, {"a": 8, "b": 6, "c": 3}),
        ({"exclude": "[ab]"}, {"a": 8, "b": 12, "c": 3}),
        ({"include": ["a", "c"]}, {"a": 4, "b": 12, "c": 3}),
        ({"include": "a", "exclude": None}, {"a": 4, "b": 12, "c": 6}),
    ],
)
def test_layers_are_chosen_by_name(options, left):
    _, report, _ = pruned(BY_NAME["vgg"].body, **options)
    assert {name: report[name].filters for name in left} == left


def test_a_layer_tied_to_an_excluded_one_stays_too():
    _, report, _ = pruned(BY_NAME["resnet"].body, exclude="a")
    assert report["c"].filters == 8
    assert report["c"].note == "a: excluded by 'a'"
    assert report["b"].filters == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": 0}, r"density=0 has to be a number in \(0, 1\]"),
        ({"density": 1.5}, r"density=1.5 has to be a number in \(0, 1\]"),
        ({"density": 0.5, "norm": "l3"}, "norm='l3' is not one of l1, l2"),
        ({"density": 0.5, "multiple": 0}, "multiple=0 has to be a whole number, 1 or more"),
    ],
)
def test_options_are_checked_when_they_are_given(options, message):
    with pytest.raises(OptionError, match=message):
        ChannelPrune(**options)


def test_layers_that_are_not_there_are_refused():
    with pytest.raises(PruningError, match="include='z' matches no layer that can be pruned: a, b"):
        pruned(BY_NAME["vgg"].body, include="z")
    with pytest.raises(PruningError, match="no layer that can be pruned"):
        ChannelPrune(0.5)(module({"x": (2, 3)}, lambda emit, x: op.exp(x)))


def test_weights_that_are_no_numbers_are_refused():
    weights = array(0, 8, 3, 1, 1)
    weights[2, 1] = np.nan

    def body(emit, x):
        y = emit(op.nn.conv2d(x, const(weights)), "bad")
        return op.mean(y, [2, 3])

    with pytest.raises(PruningError, match=r"layer bad: the weight at \(2, 1, 0, 0\) is nan"):
        ChannelPrune(0.5, exclude=())(module({"x": (1, 3, 4, 4)}, body))


def test_a_channels_last_convolution():
    weights, bias = array(0, 3, 3, 4, 8), array(1, 8)
    head = array(2, 8, 5)

    def body(emit, x):
        y = emit(op.nn.conv2d(x, const(weights), data_layout="NHWC", kernel_layout="HWIO"), "a")
        y = emit(op.nn.relu(emit(op.add(y, const(bias)))))
        return op.matmul(emit(op.mean(y, [1, 2])), const(head))

    new = ChannelPrune(0.5, multiple=1, exclude=())(module({"x": (1, 5, 5, 4)}, body))
    kept = np.sort(np.argsort(np.abs(weights).sum((0, 1, 2)))[4:])
    x = array(3, 1, 5, 5, 4)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype("float64"), (3, 3), (1, 2))
    y = np.einsum("nhwcij,ijco->nhwo", windows, weights[..., kept].astype("float64"))
    expected = np.maximum(y + bias[kept], 0).mean((1, 2)) @ head[kept]
    np.testing.assert_allclose(run(new, x), expected, rtol=1e-4, atol=1e-5)


def test_options_are_a_value():
    prune = ChannelPrune(0.25, norm="l2")
    assert (prune.density, prune.norm, prune.multiple) == (0.25, "l2", 8)
    assert prune.info.name == "ChannelPrune"
