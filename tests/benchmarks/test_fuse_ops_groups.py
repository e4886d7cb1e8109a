"""FuseOps' groups in our form: what they hold, and their numbers against numpy."""

import numpy as np
import pytest
from passes.relax_models import array, const, module
from tvm import relax

from benchmarks.fuse_ops_groups import FuseOpsGroups
from benchmarks.fusion_row import build_grouped
from tvm_ext.layers import layers
from tvm_ext.passes import dataflow as df
from tvm_ext.pipeline import graph_pipeline

W = array(0, 8, 4, 1, 1)
BIAS = array(1, 1, 8, 1, 1)
X = array(2, 1, 4, 6, 6)


def _body(emit, x):
    """FuseOps takes the moves and exp at the end for one kernel; ours may take fewer."""
    y = emit(relax.op.add(emit(relax.op.nn.conv2d(x, const(W))), const(BIAS)))
    y = emit(relax.op.nn.relu(y))
    z = emit(relax.op.permute_dims(emit(relax.op.nn.softmax(y, axis=-1)), (0, 2, 3, 1)))
    z = emit(relax.op.concat([z, emit(relax.op.exp(z))], axis=3))
    return relax.op.negative(z)


def _expected():
    y = np.einsum("oi,nihw->nohw", W[:, :, 0, 0].astype("float64"), X.astype("float64")) + BIAS
    y = np.exp(np.maximum(y, 0))
    z = (y / y.sum(-1, keepdims=True)).transpose(0, 2, 3, 1)
    return -np.concatenate([z, np.exp(z)], axis=3)


def test_it_stands_in_the_pipeline_in_place_of_our_fusion():
    mod = module({"x": X.shape}, _body)
    names = [p.info.name for p in graph_pipeline(FuseOpsGroups()).passes]
    assert (names[-1], "UniversalFusion" in names) == ("FuseOpsGroups", False)
    actual = build_grouped(graph_pipeline(FuseOpsGroups())(mod), ["y"])(X)
    np.testing.assert_allclose(actual, _expected(), rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def mod():
    return module({"x": X.shape}, _body)


def test_without_cutting_the_groups_are_fuse_ops_own(mod):
    grouped = FuseOpsGroups(split=False)(mod)
    called = [e.op for _, e in df.bindings(grouped["main"]) if isinstance(e, relax.Call)]
    found = [_ops(grouped[name]) for name in called]
    assert found == [
        ["nn.conv2d", "add", "nn.relu"], ["nn.softmax"],
        ["permute_dims", "exp", "concat", "negative"],
    ]  # fmt: skip


def _ops(function):
    names = [df.op_name(e).removeprefix("relax.") for _, e in df.bindings(function)]
    return [name for name in names if name]


def test_cut_groups_have_kernels_of_ours(mod):
    grouped = FuseOpsGroups()(mod)
    found = layers(grouped)
    assert [layer.fallback for layer in found] == [""] * len(found)
    assert found[0].ops == ("nn.conv2d", "add", "nn.relu")
    assert len({layer.name for layer in found}) == len(found)
    assert sorted(op for layer in found for op in layer.ops) == [
        "add", "concat", "exp", "negative", "nn.conv2d", "nn.relu", "nn.softmax", "permute_dims",
    ]  # fmt: skip


def test_numbers(mod):
    actual = build_grouped(FuseOpsGroups()(mod), ["y"])(X)
    np.testing.assert_allclose(actual, _expected(), rtol=1e-4, atol=1e-5)


def test_tuples_stay_in_main():
    """Two outputs, one of them the part of a tuple that two kernels read."""

    def body(emit, x):
        parts = emit(relax.op.split(x, 2, axis=1))
        first, second = (emit(relax.TupleGetItem(parts, i)) for i in (0, 1))
        return relax.Tuple([emit(relax.op.nn.softmax(first)), emit(relax.op.exp(second)), first])

    grouped = FuseOpsGroups()(module({"x": (1, 4, 6)}, body))
    x = X[0].reshape(1, 4, 36)[:, :, :6].copy()
    softmax, exponential, first = build_grouped(grouped, ["a", "b", "c"])(x)
    powers = np.exp(x[:, :2].astype("float64"))
    np.testing.assert_allclose(softmax, powers / powers.sum(-1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(exponential, np.exp(x[:, 2:]), rtol=1e-5)
    np.testing.assert_array_equal(first, x[:, :2])


def test_equal_groups_share_a_function():
    weight = const(array(3, 4, 4, 3, 3))

    def body(emit, x):
        for _ in range(3):
            x = emit(relax.op.nn.relu(emit(relax.op.nn.conv2d(x, weight, padding=1))))
        return x

    grouped = FuseOpsGroups()(module({"x": (1, 4, 5, 5)}, body))
    assert [layer.ops for layer in layers(grouped)] == [("nn.conv2d", "nn.relu")] * 3
    assert len(grouped.functions) == 1 + 1
