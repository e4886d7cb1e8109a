"""Channel shuffles that the convolution before them stores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm.relax import op

import tvm_ext
from tests.passes.relax_models import array, const, module, run
from tvm_ext.fusion_profile import CostProfile
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.kernel_parts import NoKernel
from tvm_ext.target import resolve

SHAPE = (2, 6, 5, 7)
NEON = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
POINTWISE = {2: array(0, 12, 6, 1, 1), 3: array(0, 12, 2, 1, 1)}
BIAS = array(1, 1, 12, 1, 1)


def _conv(emit, x):
    return emit(op.nn.conv2d(x, const(POINTWISE[3]), groups=3))


def _unit(emit, x):
    """A grouped 1x1 convolution, its bias and its activation."""
    return emit(op.nn.relu(emit(op.add(_conv(emit, x), const(BIAS)))))


def _shuffle(emit, x, groups):
    n, c, *spatial = df.shape_of(x)
    x = emit(op.reshape(x, (n, groups, c // groups, *spatial)))
    x = emit(op.permute_dims(x, (0, 2, 1, *range(3, len(spatial) + 3))))
    return emit(op.reshape(x, (n, c, *spatial)))


def _depthwise(emit, x):
    channels = df.shape_of(x)[1]
    return emit(op.nn.conv2d(x, const(array(2, channels, 1, 3, 3)), groups=channels))


def _layers(body, profile=None, shape=SHAPE):
    fusion = UniversalFusion(profile) if profile else UniversalFusion()
    found = layers(fusion(module({"x": shape}, body)))
    assert not any(layer.fallback for layer in found)
    return found, {refusal.reason for refusal in fusion.refusals}


def _shuffles(found):
    return [getattr(layer.workload, "shuffle", 1) for layer in found]


def test_a_shuffle_is_the_order_in_which_the_convolution_stores():
    found, _ = _layers(lambda emit, x: _depthwise(emit, _shuffle(emit, _unit(emit, x), 3)))
    assert _shuffles(found) == [3, 1]
    assert found[0].ops == ("nn.conv2d", "add", "nn.relu", "reshape", "permute_dims", "reshape")
    assert [s.op for s in found[0].workload.epilogue.steps] == ["add", "relu"]
    assert found[0].workload.out_shape == (2, 12, 5, 7)


def _flat_positions(emit, x):
    """The same without a dimension for each that stays; the rest of one image is one row."""
    y = emit(op.reshape(_unit(emit, x), (4, 3, 35)))
    return op.reshape(emit(op.permute_dims(y, (1, 0, 2))), (1, 12, 5, 7))


def _cut_channels(emit, x):
    """The channels of a group in two dimensions, which move together."""
    y = emit(op.reshape(_unit(emit, x), (1, 4, 3, 1, 35)))
    y = emit(op.permute_dims(emit(op.reshape(y, (1, 2, 2, 3, 35))), (0, 3, 1, 2, 4)))
    return op.reshape(y, (1, 12, 5, 7))


@pytest.mark.parametrize("body", [_flat_positions, _cut_channels])
def test_the_order_counts_not_the_operators(body):
    shape = (1, *SHAPE[1:])
    found, _ = _layers(body, shape=shape)
    assert _shuffles(found) == [4]
    _assert_computes(body, shape)


def _line(emit, x):
    y = emit(op.nn.conv1d(x, const(array(3, 8, 3, 3)), groups=2))
    return _shuffle(emit, emit(op.nn.relu(y)), 2)


def _volume(emit, x):
    y = emit(op.nn.conv3d(x, const(array(3, 8, 6, 1, 2, 3)), strides=2))
    return op.tanh(_shuffle(emit, y, 4))


@pytest.mark.parametrize(
    ("body", "shape", "groups"), [(_line, (1, 6, 20), 2), (_volume, (2, 6, 3, 5, 7), 4)]
)
def test_other_dimensions_and_steps_behind(body, shape, groups):
    found, _ = _layers(body, shape=shape)
    assert _shuffles(found) == [groups]
    _assert_computes(body, shape)


def _read_elsewhere(emit, x):
    y = _unit(emit, x)
    return op.concat([y, _shuffle(emit, y, 3)], 1)


def _positions(emit, x):
    return op.permute_dims(_unit(emit, x), (0, 1, 3, 2))


def _depth_to_space(emit, x):
    y = emit(
        op.permute_dims(emit(op.reshape(_unit(emit, x), (2, 3, 2, 2, 5, 7))), (0, 1, 4, 2, 5, 3))
    )
    return op.reshape(y, (2, 3, 10, 14))


def _samples(emit, x):
    y = emit(op.permute_dims(emit(op.reshape(_unit(emit, x), (2, 3, 4, 5, 7))), (1, 0, 2, 3, 4)))
    return op.reshape(y, (2, 12, 5, 7))


@pytest.mark.parametrize("body", [_read_elsewhere, _positions, _depth_to_space, _samples])
def test_other_orders_have_a_kernel_of_their_own(body):
    found, _ = _layers(body)
    assert len(found) > 1 and set(_shuffles(found)) == {1}


def test_constants_of_channels_behind_the_shuffle_have_no_strides():
    found, reasons = _layers(lambda emit, x: op.add(_shuffle(emit, _conv(emit, x), 3), const(BIAS)))
    assert _shuffles(found) == [3, 1]
    assert "the order of an operand has no strides" in reasons


def _always(one, parts):
    return True


def _pool_behind(emit, x):
    return op.nn.max_pool2d(_shuffle(emit, _conv(emit, x), 3), (2, 2))


def _steps_before(emit, x):
    return _shuffle(emit, _conv(emit, emit(op.nn.relu(x))), 3)


@pytest.mark.parametrize("body", [_pool_behind, _steps_before])
def test_pools_and_steps_before_stay_apart(body):
    pairs = df.bindings(module({"x": SHAPE}, body)["main"])
    with pytest.raises(NoKernel, match="no steps before it and no pool"):
        kernel_form([(var, expr) for var, expr in pairs if df.op_name(expr)])
    found, _ = _layers(body, _always)
    assert len(found) > 1


def test_a_producer_and_its_reader_store_in_order():
    def before(emit, x):
        y = emit(op.nn.conv2d(x, const(POINTWISE[2])))
        y = _depthwise(emit, _shuffle(emit, y, 2))
        return op.nn.conv2d(y, const(array(3, 4, 12, 1, 1)))

    def behind(emit, x):
        return _shuffle(emit, emit(op.nn.conv2d(_depthwise(emit, x), const(POINTWISE[2]))), 2)

    for body, expected in ((before, [2, 1]), (behind, [1, 2])):
        found, reasons = _layers(body, _always)
        assert _shuffles(found) == expected
        assert "one of the two kernels shuffles its channels" in reasons


def test_the_profile_decides():
    found, reasons = _layers(
        lambda emit, x: _shuffle(emit, _unit(emit, x), 3), lambda one, parts: False
    )
    assert set(_shuffles(found)) == {1} and "one kernel would be slower" in reasons


@pytest.mark.parametrize("cores", [1, 4])
def test_the_cost_model_saves_the_copy(cores):
    found, _ = _layers(
        lambda emit, x: _depthwise(emit, _shuffle(emit, _unit(emit, x), 3)),
        CostProfile(replace(NEON, cores=cores)), (1, 6, 28, 28),
    )  # fmt: skip
    assert _shuffles(found) == [3, 1]


def _network(emit, x):
    """Two units of ShuffleNet, the first of which halves its maps."""
    y = _depthwise(emit, _shuffle(emit, _unit(emit, x), 3))
    y = emit(op.nn.conv2d(y, const(array(3, 6, 4, 1, 1)), groups=3))
    z = emit(op.nn.avg_pool2d(x, (3, 3)))
    y = emit(op.nn.relu(emit(op.concat([y, z], 1))))
    w = emit(op.nn.conv2d(y, const(array(4, 12, 3, 1, 1)), groups=4))
    w = _shuffle(emit, emit(op.nn.relu(w)), 4)
    w = emit(op.nn.conv2d(w, const(array(5, 12, 1, 3, 3)), groups=12, padding=1))
    return op.add(emit(op.nn.conv2d(w, const(array(6, 12, 3, 1, 1)), groups=4)), y)


def test_units_of_shufflenet():
    _assert_computes(_network, SHAPE)


def _assert_computes(body, shape):
    mod, data = module({"x": shape}, body), array(9, *shape)
    out = tvm_ext.build(mod)(data)
    np.testing.assert_allclose(out, run(mod, data), rtol=1e-4, atol=1e-4)
