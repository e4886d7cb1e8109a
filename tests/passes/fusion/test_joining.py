"""Which groups become one kernel with the group before them."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

import tvm_ext
from tests.passes.relax_models import array, const, enlarged, module, run
from tvm_ext import planner
from tvm_ext.assemble import assemble
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.target import resolve

DEPTHWISE, POINTWISE, WIDE = array(0, 8, 1, 3, 3), array(1, 4, 8, 1, 1), array(2, 4, 8, 3, 3)
BIAS = array(3, 1, 8, 1, 1)
SHAPE = (1, 8, 6, 7)


def _depthwise(emit, x, **options):
    y = emit(op.nn.conv2d(x, const(DEPTHWISE), padding=1, groups=8, **options))
    return emit(op.nn.relu(emit(op.add(y, const(BIAS)))))


def _pair(emit, x):
    return op.nn.relu(emit(op.nn.conv2d(_depthwise(emit, x), const(POINTWISE))))


def _layers(body, profile=None, **inputs):
    fusion = UniversalFusion(profile) if profile else UniversalFusion()
    return layers(fusion(module(inputs, body))), fusion.refusals


def test_a_depthwise_convolution_joins_the_1x1_behind_it():
    (layer,), _ = _layers(_pair, x=SHAPE)
    assert layer.ops == ("nn.conv2d", "add", "nn.relu", "nn.conv2d", "nn.relu")
    w = layer.workload
    assert isinstance(w, ConvWorkload) and w.producer is not None
    assert (w.source_shape, w.in_shape, w.out_shape) == (SHAPE, SHAPE, (1, 4, 6, 7))
    assert [s.op for s in w.producer.epilogue.steps] == ["add", "relu"]
    assert [s.op for s in w.epilogue.steps] == ["relu"]
    assert [x.shape for x in layer.weights] == [POINTWISE.shape, DEPTHWISE.shape]
    np.testing.assert_array_equal(layer.operands[0], BIAS)


def test_the_built_pair_computes_the_same():
    mod, data = module({"x": SHAPE}, _pair), array(9, *SHAPE)
    exe = tvm_ext.build(mod)
    out = exe(data)
    np.testing.assert_allclose(out, run(mod, data), rtol=1e-4, atol=1e-4)


def test_the_profile_decides():
    asked = []

    def profile(one, parts):
        asked.append([len(part) for part in parts])
        return False

    found, refusals = _layers(_pair, profile, x=SHAPE)
    assert len(found) == 2 and asked == [[3, 2]]
    assert "one kernel would be slower" in [r.reason for r in refusals]


def _reads_it_twice(emit, x):
    y = _depthwise(emit, x)
    return op.concat([emit(op.nn.conv2d(y, const(POINTWISE))), y], 1)


def _adds_what_it_reads(emit, x):
    y = _depthwise(emit, x)
    z = emit(op.nn.conv2d(y, const(array(4, 8, 8, 1, 1))))
    return op.add(z, y)


def _neighbours(emit, x):
    return op.nn.conv2d(_depthwise(emit, x), const(WIDE), padding=1)


def _strided(emit, x):
    return op.nn.conv2d(_depthwise(emit, x), const(POINTWISE), strides=2)


def _computed_residual(emit, x):
    y = emit(op.nn.conv2d(x, const(DEPTHWISE), padding=1, groups=8))
    return op.nn.conv2d(emit(op.add(y, x)), const(POINTWISE))


@pytest.mark.parametrize(
    "body", [_reads_it_twice, _adds_what_it_reads, _neighbours, _strided, _computed_residual]
)
def test_others_stay_apart(body):
    found, _ = _layers(body, x=SHAPE)
    assert all(getattr(layer.workload, "producer", None) is None for layer in found)
    assert len(found) > 1


def _constant_of_positions(emit, x):
    y = emit(op.nn.conv2d(x, const(DEPTHWISE), padding=1, groups=8))
    return op.nn.conv2d(emit(op.add(y, const(array(5, *SHAPE)))), const(POINTWISE))


@pytest.mark.parametrize(
    "body, reason",
    [
        (_computed_residual, "the steps between read a computed tensor"),
        (_constant_of_positions, "a step between has a constant for more than each channel"),
    ],
)
def test_steps_between_have_constants_of_channels(body, reason):
    found, refusals = _layers(body, x=SHAPE)
    assert len(found) == 2 and reason in [r.reason for r in refusals]


def test_the_next_depthwise_convolution_is_another_kernel():
    def body(emit, x):
        y = emit(op.nn.conv2d(_depthwise(emit, x), const(array(4, 8, 8, 1, 1))))
        return op.nn.conv2d(_depthwise(emit, y), const(POINTWISE))

    found, _ = _layers(body, x=SHAPE)
    assert [layer.ops.count("nn.conv2d") for layer in found] == [2, 2]


def _conv(emit, x, **options):
    return op.nn.relu(emit(op.nn.conv2d(x, const(WIDE), padding=1, **options)))


def _pooled_before(emit, x):
    return _conv(emit, emit(op.nn.max_pool2d(x, (2, 2), (2, 2))))


def _nearest_before(emit, x):
    return _conv(emit, enlarged(emit, x, 2, 2))


def _linear_before(emit, x):
    size = relax.ShapeExpr([12, 21])
    y = op.image.resize2d(
        x, size, method="linear", coordinate_transformation_mode="half_pixel", layout="NCHW"
    )
    return _conv(emit, emit(y))


def _resized_and_pooled(emit, x):
    """Resize-Conv-ReLU-MaxPool of Tiramisu, section 5."""
    return op.nn.max_pool2d(emit(_nearest_before(emit, x)), (2, 2), (2, 2))


@pytest.mark.parametrize(
    "body", [_pooled_before, _nearest_before, _linear_before, _resized_and_pooled]
)
def test_rows_of_pools_and_enlargements_are_computed_by_the_convolution(body):
    # Pools behind convolutions are fused where the profile says so.
    (layer,), _ = _layers(body, lambda one, parts: True, x=SHAPE)
    assert layer.workload.producer is not None
    assert (layer.workload.pool is not None) == (body is _resized_and_pooled)
    mod, data = module({"x": SHAPE}, body), array(9, *SHAPE)
    grouped = UniversalFusion(lambda one, parts: True)(mod)
    got = run(grouped, data)
    np.testing.assert_allclose(got, run(mod, data), rtol=1e-4, atol=1e-4)
    exe = assemble(grouped, *_planned(grouped), ["out"])
    np.testing.assert_allclose(exe(data), run(mod, data), rtol=1e-4, atol=1e-4)


def _planned(grouped):
    target = resolve("native")
    found = layers(grouped)
    return found, planner.choose(found, target), target


def _strided_1x1(emit, x):
    y = emit(op.nn.max_pool2d(x, (3, 3), (1, 1), padding=1))
    return op.nn.conv2d(y, const(POINTWISE), strides=2)


def _one_window(emit, x):
    return op.nn.conv2d(emit(op.nn.avg_pool2d(x, (6, 7))), const(POINTWISE))


def _groups(emit, x):
    y = emit(op.nn.max_pool2d(x, (3, 3), (1, 1), padding=1))
    return op.nn.conv2d(y, const(array(4, 8, 4, 1, 1)), groups=2)


@pytest.mark.parametrize("body", [_strided_1x1, _one_window, _groups])
def test_other_pools_stay_apart(body):
    found, _ = _layers(body, lambda one, parts: True, x=SHAPE)
    assert len(found) == 2


def test_an_inverted_residual_block_is_one_kernel():
    def body(emit, x):
        wide = emit(op.nn.relu(emit(op.nn.conv2d(x, const(array(4, 8, 8, 1, 1))))))
        narrow = emit(op.nn.conv2d(_depthwise(emit, wide), const(array(5, 8, 8, 1, 1))))
        return op.add(narrow, x)

    (layer,), _ = _layers(body, x=SHAPE)
    assert layer.ops.count("nn.conv2d") == 3
    assert layer.workload.producer.producer is not None
    mod, data = module({"x": SHAPE}, body), array(9, *SHAPE)
    np.testing.assert_allclose(tvm_ext.build(mod)(data), run(mod, data), rtol=1e-4, atol=1e-4)


def test_a_block_without_its_end_stays_apart():
    def body(emit, x):
        wide = emit(op.nn.relu(emit(op.nn.conv2d(x, const(array(4, 8, 8, 1, 1))))))
        return _depthwise(emit, wide)

    found, refusals = _layers(body, x=SHAPE)
    assert len(found) == 2
    assert any("only together with a 1x1 one" in r.reason for r in refusals)
