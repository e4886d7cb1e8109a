"""A layer's group as one TensorIR function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax

from tests.passes.relax_models import array, const
from tests.transfer.programs import conv, conv_layer, layers_of, matmul_layer, numpy_conv, run
from tvm_ext.schedules.tuned import buffer_shapes
from tvm_ext.transfer.tensor_program import LayerProgram, tensor_program


@pytest.mark.parametrize("stride", [1, 2])
def test_it_computes_the_layer(stride: int) -> None:
    made = conv(5, 7, 9, 3, stride)
    x = array(0, 1, 5, 9, 9)
    weight, bias = made.constants
    expected = numpy_conv(x, weight, stride, 1, ("add", "relu"), bias)
    found = run(made.workload.function, [x, weight, bias], expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_arguments_are_the_inputs_the_constants_and_the_output() -> None:
    made = conv(8, 16, 8, 3)
    assert buffer_shapes(made.workload.function) == [
        ((1, 8, 8, 8), "float32"), ((16, 8, 3, 3), "float32"), ((1, 16, 1, 1), "float32"),
        ((1, 16, 8, 8), "float32"),
    ]  # fmt: skip
    np.testing.assert_array_equal(made.constants[0], array(3, 16, 8, 3, 3))
    assert made.workload.ops == ("nn.conv2d", "add", "nn.relu")
    assert made.workload.bytes == 4 * (8 * 64 + 16 * 72 + 16 + 16 * 64)


def test_weights_do_not_make_another_program() -> None:
    def layer(seed: int) -> Any:
        def body(emit: Any, x: Any) -> Any:
            return relax.op.matmul(x, const(array(seed, 8, 4)))

        return tensor_program(layers_of(body, x=(2, 8))[0])

    first, second = layer(1), layer(2)
    assert first.workload == second.workload
    assert hash(first.workload) == hash(second.workload)
    assert (first.constants[0] != second.constants[0]).any()
    assert conv(8, 16).workload != conv(8, 24).workload


def test_a_constant_used_twice_is_one_argument() -> None:
    weight = const(array(1, 6, 6))

    def body(emit: Any, x: Any) -> Any:
        y = emit(relax.op.add(x, weight))
        return relax.op.multiply(y, weight)

    (layer,) = layers_of(body, x=(6, 6))
    made = tensor_program(layer)
    assert isinstance(made, LayerProgram)
    assert len(made.constants) == 1
    x, w = array(0, 6, 6), array(1, 6, 6)
    np.testing.assert_allclose(run(made.workload.function, [x, w], (6, 6)), (x + w) * w, rtol=1e-6)


def test_depthwise_convolutions_are_of_another_class() -> None:
    made = tensor_program(conv_layer(8, 8, 8, 3, groups=8, epilogue=()))
    assert isinstance(made, LayerProgram)
    assert made.workload.ops == ("nn.conv2d_depthwise",)


def test_layers_without_one_say_why() -> None:
    def reshape(emit: Any, x: Any) -> Any:
        return relax.op.reshape(x, (4, 4))

    (layer,) = layers_of(reshape, x=(2, 8))
    assert tensor_program(layer) == "a view computes nothing"

    def top(emit: Any, x: Any) -> Any:
        return emit(relax.op.topk(x, k=2))

    (layer,) = [each for each in layers_of(top, x=(2, 8)) if "topk" in each.ops]
    assert tensor_program(layer) == "it has 2 outputs; only 1"

    def sort(emit: Any, x: Any) -> Any:
        return relax.op.sort(x)

    (layer,) = layers_of(sort, x=(2, 8))
    assert tensor_program(layer) == "its implementation has no blocks inside loops"
    assert isinstance(tensor_program(matmul_layer()), LayerProgram)
