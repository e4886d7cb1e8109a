"""Layers that read feature maps behind reshapes: same values, no conversions."""

from __future__ import annotations

import numpy as np
import pytest
from passes.relax_models import array, const, module, run
from tvm import relax

import tvm_ext
from tvm_ext.layers import layers
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.read_through import unread_views
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.workload import TransposeWorkload
from tvm_ext.target import resolve

V = resolve().lanes
C = 2 * V


def _map(emit, x, channels=C):
    weight = array(0, channels, int(x.ty.shape[1]), 3, 3) / 10
    return emit(relax.op.nn.conv2d(x, const(weight.astype("float32")), padding=1))


def _dense(emit, x, k, n=9):
    return emit(relax.op.matmul(x, const(array(1, k, n) / np.float32(10))))


def _flatten(emit, x):
    k = C * 4 * 5
    return _dense(emit, emit(relax.op.reshape(_map(emit, x), (2, k))), k)


def _flatten_twice(emit, x):
    k = C * 4 * 5
    y = emit(relax.op.reshape(_map(emit, x), (2, C, 20)))
    return _dense(emit, emit(relax.op.reshape(y, (2, k))), k)


def _anchors(emit, x):
    y = emit(relax.op.reshape(_map(emit, x), (2, 2, V, 4, 5)))
    return emit(relax.op.permute_dims(y, (0, 1, 3, 4, 2)))


def _checked(body, plan=None):
    mod = module({"x": (2, V, 4, 5)}, body)
    executable = tvm_ext.build(mod, plan=plan)
    data = array(5, 2, V, 4, 5)
    want = run(mod, data)
    np.testing.assert_allclose(executable(data), want, rtol=1e-4, atol=1e-4)
    return executable


def _conversions(executable):
    return [c.layer for c in executable.program.calls if c.kernel.startswith("layout_transform")]


@pytest.mark.parametrize("body", (_flatten, _flatten_twice, _anchors))
def test_maps_stay_in_blocks(body, steady):
    executable = _checked(body)
    last = executable.plan.layers[-1]
    assert last.layout[0].endswith(f"{V}c")
    assert not _conversions(executable)


def test_another_reader_of_the_reshape_has_it_converted(steady):
    def body(emit, x):
        k = C * 4 * 5
        flat = emit(relax.op.reshape(_map(emit, x), (2, k)))
        norm = emit(relax.op.nn.softmax(flat))
        return emit(relax.op.concat([_dense(emit, flat, k), norm], 1))

    mod = module({"x": (2, V, 4, 5)}, body)
    plan = tvm_ext.plan(mod)
    names = {"nn.conv2d": "spatial_pack", "matmul": "gemv"}
    for layer in layers(graph_pipeline()(mod)):
        if (name := names.get(layer.ops[0])) is not None:
            entry = plan[layer.name]
            entry.algorithm = name
            entry.params = algorithms()[name].default(layer.workload, resolve())
            entry.layout = [f"NCHW{V}c", entry.layout[1] if name == "gemv" else f"NCHW{V}c"]
    # Of the convolution's input, and of its output for the softmax.
    assert len(_conversions(_checked(body, plan))) == 2


def test_a_reshape_that_is_a_result_too(steady):
    def body(emit, x):
        flat = emit(relax.op.reshape(_map(emit, x), (2, C * 4 * 5)))
        return relax.Tuple([flat, _dense(emit, flat, C * 4 * 5)])

    mod = module({"x": (2, V, 4, 5)}, body)
    data = array(5, 2, V, 4, 5)
    flat, product = tvm_ext.build(mod)(data)
    assert flat.shape == (2, C * 4 * 5)
    weight = array(1, C * 4 * 5, 9) / np.float32(10)
    np.testing.assert_allclose(product, flat @ weight, rtol=1e-4, atol=1e-4)


def test_operators_of_tvm_read_the_reshape(steady):
    """A user's plan leaves the product to TVM, which takes what the model passes."""
    mod = module({"x": (2, V, 4, 5)}, _flatten)
    plan = tvm_ext.plan(mod)
    last = plan.layers[-1]
    last.algorithm, last.params, last.layout = "generic", {}, ["plain", "plain"]
    assert len(_conversions(_checked(_flatten, plan))) == 1


def test_which_layers_read_through():
    """Not a softmax, not a map of single positions, not positions that a permutation cuts."""

    def body(emit, x):
        y = _map(emit, x)
        norm = emit(relax.op.nn.softmax(emit(relax.op.reshape(y, (2, C * 20)))))
        halves = emit(relax.op.reshape(y, (2, C, 2, 10)))
        halves = emit(relax.op.permute_dims(halves, (0, 2, 3, 1)))
        pooled = emit(relax.op.nn.avg_pool2d(y, (4, 5), strides=(4, 5)))
        product = _dense(emit, emit(relax.op.reshape(pooled, (2, C))), C)
        return relax.Tuple([norm, halves, pooled, product])

    found = layers(graph_pipeline()(module({"x": (2, V, 4, 5)}, body)))
    assert unread_views(found) == set()
    (turned,) = (x.workload for x in found if isinstance(x.workload, TransposeWorkload))
    assert turned.source == ()
    (product,) = (x.workload for x in found if x.ops[0] == "matmul")
    assert product.lhs_shape == (2, C)


def test_only_views_without_another_reader_are_unread():
    found = layers(graph_pipeline()(module({"x": (2, V, 4, 5)}, _flatten_twice)))
    views = [layer.output for layer in found if layer.ops[0] == "reshape"]
    assert views and unread_views(found) == set(views)
