"""Nearest enlargement by whole factors inside other kernels: groups, plans and values."""

import numpy as np
import pytest
from tvm import relax

import tvm_ext
from tests.passes.relax_models import array, const, enlarged, module, run
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion

SHAPE = (1, 4, 6, 6)
# Whether a kernel takes the enlargement is decided by estimates.
pytestmark = pytest.mark.usefixtures("steady")


def _groups(body, **inputs):
    mod = UniversalFusion()(module(inputs or {"x": SHAPE}, body))
    return [layer.ops for layer in layers(mod)]


def _conv(emit, x, kernel=3, out=4, seed=0):
    weight = array(seed, out, int(x.ty.shape[1]), kernel, kernel) / 8
    return emit(relax.op.nn.conv2d(x, const(weight), padding=kernel // 2))


def _agrees(mod, *inputs):
    executable = tvm_ext.build(mod)
    expected = run(mod, *inputs)
    np.testing.assert_allclose(executable(list(inputs)), expected, rtol=1e-4, atol=1e-4)
    return executable


def test_enlarging_before_a_sum_is_index_arithmetic_of_the_convolution():
    def body(emit, x, y):
        top = _conv(emit, y, 1)
        return relax.op.add(_conv(emit, x), enlarged(emit, top, 2, 2))

    groups = _groups(body, x=SHAPE, y=(1, 4, 3, 3))
    assert sorted(groups) == [("nn.conv2d",), ("nn.conv2d", "image.resize2d", "add")]


def test_enlarging_before_a_convolution_is_a_part_of_it():
    def body(emit, x):
        return _conv(emit, enlarged(emit, emit(relax.op.nn.relu(_conv(emit, x))), 2, 2))

    assert _groups(body) == [("nn.conv2d", "nn.relu"), ("image.resize2d", "nn.conv2d")]


def test_enlarging_that_ends_before_a_normalization_is_a_layer():
    def body(emit, x):
        y = enlarged(emit, emit(relax.op.nn.relu(_conv(emit, x))), 2, 2)
        return relax.op.nn.softmax(y)

    assert _groups(body) == [("nn.conv2d", "nn.relu"), ("image.resize2d",), ("nn.softmax",)]


def test_an_enlarged_value_with_two_readers_is_computed_once():
    def body(emit, x, y):
        top = enlarged(emit, y, 2, 2)
        return relax.op.concat([emit(relax.op.add(_conv(emit, x), top)), _conv(emit, top)], 1)

    groups = _groups(body, x=SHAPE, y=(1, 4, 3, 3))
    assert groups.count(("image.resize2d",)) == 1
    assert ("nn.conv2d", "add") in groups


def test_enlarging_and_a_chain_are_one_group():
    def body(emit, x):
        return relax.op.tanh(emit(relax.op.nn.relu(enlarged(emit, x, 2, 3))))

    assert _groups(body) == [("image.resize2d", "nn.relu", "tanh")]


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("size", [(10, 14), (5, 28)])
def test_the_sum_of_a_pyramid_reads_the_smaller_level_in_its_convolution(kernel, size):
    def body(emit, x, y):
        top = _conv(emit, y, 3, 24, 3)
        factors = (20 // size[0], 28 // size[1])
        return relax.op.add(_conv(emit, x, kernel, 24), enlarged(emit, top, *factors))

    mod = module({"x": (2, 8, 20, 28), "y": (2, 20, *size)}, body)
    executable = _agrees(mod, array(0, 2, 8, 20, 28), array(1, 2, 20, *size))
    ops = [layer.ops for layer in executable.plan]
    assert ops == [["nn.conv2d"], ["nn.conv2d", "image.resize2d", "add"]]


def test_levels_of_a_pyramid_are_as_many_kernels_as_convolutions():
    def body(emit, x, y, z):
        level = _conv(emit, z, 3, 24, 3)
        for i, source in enumerate((y, x)):
            lateral = _conv(emit, source, 1 + 2 * i, 24, i)
            level = emit(relax.op.add(lateral, enlarged(emit, level, 2, 2)))
        return level

    shapes = {"x": (2, 8, 20, 28), "y": (2, 16, 10, 14), "z": (2, 20, 5, 7)}
    mod = module(shapes, body)
    executable = _agrees(mod, *(array(i, *shape) for i, shape in enumerate(shapes.values())))
    assert len(list(executable.plan)) == 3


def test_a_chain_behind_an_enlargement_is_one_kernel():
    def body(emit, x):
        return relax.op.nn.relu(emit(relax.op.negative(enlarged(emit, x, 3, 2))))

    executable = _agrees(module({"x": (2, 3, 5, 7)}, body), array(0, 2, 3, 5, 7))
    assert [layer.algorithm for layer in executable.plan] == ["elementwise"]
