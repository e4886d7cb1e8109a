"""Which pools, products with constants and norms of a few rows become one kernel."""

from __future__ import annotations

import numpy as np
import pytest
from tvm.relax import op

import tvm_ext
from tests.passes.fusion.row_chain_graphs import (
    SHAPE,
    C,
    N,
    adaptive,
    classifier,
    excitation,
    head,
    maximum,
    mean,
    padded_window,
    pool,
    product,
)
from tests.passes.relax_models import array, const, module, run
from tvm_ext import planner
from tvm_ext.fusion_profile import CostProfile
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.kernel_parts import NoKernel
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.stages import stages
from tvm_ext.schedules.workload import NormalizeWorkload, PoolWorkload
from tvm_ext.target import resolve

AVX2 = "llvm -mcpu=core-avx2"


def _layers(body, profile=None, **inputs):
    fusion = UniversalFusion(profile) if profile else UniversalFusion()
    return layers(fusion(module(inputs or {"x": SHAPE}, body))), fusion.refusals


def _types(layer):
    return [type(stage) for stage in stages(layer.workload)]


def _anchors(layer):
    return [x for x in layer.ops if x in ("matmul", "nn.softmax") or "pool" in x]


def test_an_excitation_is_one_kernel_before_the_multiplication():
    found, _ = _layers(excitation)
    chains = [layer for layer in found if len(stages(layer.workload)) > 1]
    assert len(chains) == 1 and [x.ops for x in found[1:]] == [("reshape",), ("multiply",)]
    (chain,) = chains
    assert _types(chain) == [PoolWorkload, MatmulWorkload, MatmulWorkload]
    assert [x.shape for x in chain.weights] == [(N, C), (C, N)]
    assert [x.shape for x in chain.operands] == [(1, N), (1, C)]
    assert [s.op for s in chain.workload.epilogue.steps] == ["add", "sigmoid"]


def test_a_classifier_is_one_kernel():
    (layer,), _ = _layers(classifier)
    assert _types(layer) == [PoolWorkload, MatmulWorkload, NormalizeWorkload]
    assert layer.ops == ("nn.avg_pool2d", "reshape", "matmul", "add", "nn.softmax")


@pytest.mark.parametrize(
    "body",
    [excitation, classifier, maximum, mean, adaptive, padded_window, head],
)
def test_built_models_compute_the_same(body):
    mod, data = module({"x": SHAPE}, body), array(9, *SHAPE)
    found, _ = _layers(body)
    assert any(len(stages(layer.workload)) > 1 for layer in found)
    executable = tvm_ext.build(mod)
    np.testing.assert_allclose(executable(data), run(mod, data), rtol=1e-4, atol=1e-5)


def test_steps_read_computed_tensors():
    def body(emit, x, between, behind):
        y = emit(op.add(product(emit, pool(emit, x), N), between))
        return op.multiply(product(emit, y, 7, 2), behind)

    shapes = {"x": SHAPE, "between": (2, N), "behind": (2, 1)}
    (layer,), _ = _layers(body, **shapes)
    assert len(layer.operands) == 4 and len(layer.inputs) == 1
    mod, data = module(shapes, body), [array(i, *s) for i, s in enumerate(shapes.values())]
    executable = tvm_ext.build(mod)
    assert [x.algorithm for x in executable.plan] == ["row_chain"]
    got = executable(data)
    np.testing.assert_allclose(got, run(mod, *data), rtol=1e-4, atol=1e-5)


def test_excitations_behind_convolutions_compute_the_same(steady):
    """In whatever layout the convolution stores its map."""

    def body(emit, x):
        weight = const(array(7, C, C, 3, 3) / np.float32(10))
        y = emit(op.nn.relu(emit(op.nn.conv2d(x, weight, padding=1))))
        return excitation(emit, y)

    mod, data = module({"x": SHAPE}, body), array(9, *SHAPE)
    executable = tvm_ext.build(mod)
    assert "row_chain" in [layer.algorithm for layer in executable.plan]
    np.testing.assert_allclose(executable(data), run(mod, data), rtol=1e-4, atol=1e-4)


def test_what_reads_a_flattened_map_reads_its_blocks(steady):
    """The rows of the first weight stand in the order of the blocks."""
    v = resolve().lanes
    channels = 2 * v

    def body(emit, x):
        weight = const(array(7, channels, v, 3, 3) / np.float32(10))
        y = emit(op.reshape(emit(op.nn.conv2d(x, weight, padding=1)), (2, channels * 20)))
        return product(emit, emit(op.nn.relu(product(emit, y, 40))), N, 2)

    mod, data = module({"x": (2, v, 4, 5)}, body), array(9, 2, v, 4, 5)
    executable = tvm_ext.build(mod)
    last = executable.plan.layers[-1]
    assert (last.algorithm, last.layout) == ("row_chain", [f"NCHW{v}c", "plain"])
    kernels = [call.kernel for call in executable.program.calls]
    assert not any(kernel.startswith("layout_transform") for kernel in kernels)
    np.testing.assert_allclose(executable(data), run(mod, data), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("body", [excitation, classifier, head])
def test_the_cost_model_joins_them(body):
    cpu = resolve(AVX2)
    found, _ = _layers(body, CostProfile(cpu))
    (chain,) = [x for x in planner.choose(found, cpu) if x.algorithm == "row_chain"]
    assert len(_anchors(chain)) == 3 or body is head


def test_a_longer_chain_is_cut():
    def body(emit, x):
        for i in range(4):
            x = emit(op.nn.relu(product(emit, x, 16, i)))
        return op.nn.softmax(x)

    found, refusals = _layers(body, x=(1, 16))
    assert [_anchors(layer) for layer in found] == [["matmul"] * 4, ["nn.softmax"]]
    assert "5 stages; at most 4" in [r.reason for r in refusals]


def test_a_classifier_of_three_products_is_one_kernel():
    def body(emit, x):
        for i in range(2):
            x = emit(op.nn.relu(product(emit, x, 16, i)))
        return op.nn.softmax(product(emit, x, N, 2))

    (layer,), _ = _layers(body, x=(1, 16))
    assert _anchors(layer) == [*["matmul"] * 3, "nn.softmax"]
    mod, data = module({"x": (1, 16)}, body), array(9, 1, 16)
    np.testing.assert_allclose(tvm_ext.build(mod)(data), run(mod, data), rtol=1e-4, atol=1e-5)


def _pool_is_kept(emit, x):
    y = pool(emit, x)
    return op.concat([product(emit, y, N), y], 1)


def _view_is_read_by_two(emit, x):
    y = emit(op.nn.avg_pool2d(x, (5, 6)))
    return op.multiply(emit(op.reshape(product(emit, _flat(emit, y), C), (2, C, 1, 1))), y)


def _flat(emit, y):
    return emit(op.reshape(y, (2, C)))


def _residual(emit, x):
    y = product(emit, _flat(emit, emit(op.sum(x, [2, 3]))), C)
    return op.add(product(emit, y, C, 2), y)


def _windows(emit, x):
    y = emit(op.nn.avg_pool2d(x, (5, 3), (1, 3)))
    return product(emit, emit(op.reshape(y, (2, 2 * C))), N)


def _counted_padding(emit, x):
    y = emit(op.nn.avg_pool2d(x, (6, 7), padding=(0, 0, 1, 1), count_include_pad=True))
    return product(emit, _flat(emit, y), N)


def _computed_weights(emit, x):
    weight = emit(op.reshape(emit(op.strided_slice(x, [0], [0], [1])), (C, 30)))
    return op.matmul(pool(emit, x), weight)


@pytest.mark.parametrize(
    "body",
    [
        _pool_is_kept, _view_is_read_by_two, _residual, _windows, _counted_padding,
        _computed_weights,
    ],
)  # fmt: skip
def test_others_stay_apart(body):
    found, _ = _layers(body)
    assert len(found) > 1
    assert all(len(stages(layer.workload)) == 1 for layer in found)


def _reasons(body, **inputs):
    found, refusals = _layers(body, **inputs)
    assert all(len(stages(layer.workload)) == 1 for layer in found)
    return [r.reason for r in refusals]


def test_refusals_name_the_reason():
    def others(emit, x):
        return product(emit, emit(op.reshape(product(emit, x, 8), (2, 4))), N, 2)

    def bias(emit, x):
        y = emit(op.nn.avg_pool2d(x, (5, 6)))
        y = emit(op.add(y, const(array(3, 1, C, 1, 1))))
        return product(emit, _flat(emit, y), N)

    large = (8, *SHAPE[1:])
    assert "8 rows; at most 4" in _reasons(lambda emit, x: product(emit, pool(emit, x), N), x=large)
    assert "1 rows of 8 are read as 2 of 4" in _reasons(others, x=(1, C))
    assert "a step behind the pool reads a tensor" in _reasons(bias)


def test_a_weight_that_is_computed_has_no_such_kernel():
    def body(emit, x, weight):
        return op.matmul(emit(op.matmul(x, const(array(0, C, N)))), weight)

    mod = module({"x": (2, C), "weight": (N, 7)}, body)
    pairs = [(var, expr) for var, expr in df.bindings(mod["main"]) if df.op_name(expr)]
    with pytest.raises(NoKernel, match="matmul and matmul have kernels of their own"):
        kernel_form(pairs)
