"""Networks that aren't consistent are refused by layer, tensor and value."""

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.networks import network_of, spec
from tvm_ext.codegen.errors import NetworkError
from tvm_ext.codegen.network import LAYERS, Network
from tvm_ext.codegen.network_elementwise import Add, Relu, Requantize
from tvm_ext.codegen.network_layers import Conv, MatMul, TensorSpec, window_shape
from tvm_ext.codegen.network_moves import Concat, Interleave, Reshape
from tvm_ext.codegen.network_pool import Pool


def conv(**changes):
    fields = {"weight": "w", "bias": "b", "scales": "s", "pads": (1, 1, 1, 1), **changes}
    return Conv(name="c", inputs=("x",), output="y", **fields)


def constants(cout=4, cin=3, **changes):
    return {
        "w": np.ones((cout, cin, 3, 3), "int8"),
        "b": np.zeros(cout, "int32"),
        "s": np.full(cout, 0.1, "float32"),
        **changes,
    }


X, Y = spec("x", (1, 3, 6, 5)), spec("y", (1, 4, 6, 5))


def test_macs_by_hand():
    network = network_of(conv(), [X, Y], constants())
    assert network.macs() == 4 * 6 * 5 * 3 * 9
    layer = MatMul(name="m", inputs=("x",), output="y", weight="w", bias="b", scales="s")
    product = network_of(
        layer,
        [spec("x", (2, 7)), spec("y", (2, 4))],
        {**constants(), "w": np.ones((7, 4), "int8")},
    )
    assert product.macs() == 2 * 7 * 4


@pytest.mark.parametrize(
    ("size", "kernel", "strides", "dilations", "pads", "expected"),
    [
        ((7, 7), (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), (5, 5)),
        ((7, 8), (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), (4, 4)),
        ((9, 9), (3, 1), (1, 2), (3, 1), (0, 0, 1, 0), (4, 5)),
    ],
)
def test_window_shape(size, kernel, strides, dilations, pads, expected):
    assert window_shape(size, kernel, strides, dilations, pads) == expected


@pytest.mark.parametrize(
    ("layer", "y", "held", "message"),
    [
        (conv(), replace(Y, shape=(1, 4, 6, 6)), {}, r"it makes \(1, 4, 6, 5\)"),
        (conv(groups=2), Y, {}, "2 groups of 3 channels; allowed: 1, or one a channel"),
        (conv(strides=(0, 1)), Y, {}, r"strides \(0, 1\)"),
        (conv(clamp=(5, 4)), Y, {}, r"clamp \(5, 4\); allowed"),
        (conv(weight="q"), Y, {}, "constant 'q' is no"),
        (conv(), Y, {"b": np.zeros(4, "int64")}, r"b is int64\(4,\); it needs int32\(4,\)"),
        (conv(), Y, {"s": np.zeros(4, "float32")}, "scales that aren't positive"),
        (conv(), replace(Y, zero_point=128), {}, "zero point 128; allowed: -128 to 127"),
        (conv(), replace(Y, scale=0.1), {}, "scale 0.1; allowed: a positive float32"),
        (conv(), replace(Y, shape=(2, 4, 6, 5)), {}, "one image at a time"),
        (conv(), replace(Y, dtype="int16"), {}, "dtype 'int16'; allowed: int8, int32"),
        (conv(), replace(Y, dtype="int32"), {}, "tensor y is int32; allowed: int8"),
    ],
)
def test_refused(layer, y, held, message):
    with pytest.raises(NetworkError, match=message):
        network_of(layer, [X, y], constants(**held))


SHAPE = (1, 4, 6, 6)


@pytest.mark.parametrize(
    ("layer", "specs", "message"),
    [
        (
            Pool(name="p", inputs=("x",), output="y", kind="median", kernel=(2, 2)),
            [spec("x", SHAPE), spec("y", SHAPE)], "kind 'median'; allowed: max, average",
        ),
        (
            Pool(name="p", inputs=("x",), output="y", kind="max", kernel=(2, 2), pads=(2, 0, 0, 0)),
            [spec("x", SHAPE), spec("y", SHAPE)], "less than the kernel",
        ),
        (
            Pool(name="p", inputs=("x",), output="y", kind="max", kernel=(1, 1)),
            [spec("x", SHAPE), spec("y", SHAPE, 2.0)], "the same scale and zero point",
        ),
        (
            Add(name="a", inputs=("x", "x"), output="y", scales=(0.1, 0.5), offset=0.0),
            [spec("x", SHAPE), spec("y", SHAPE)], "allowed: float32",
        ),
        (
            Relu(name="r", inputs=("x",), output="y"),
            [spec("x", SHAPE), spec("y", (1, 4, 6, 5))], "the output has",
        ),
        (
            Relu(name="r", inputs=("x",), output="y"),
            [spec("x", SHAPE), spec("y", SHAPE, 1.0, 1)], "isn't quantised as the output is",
        ),
        (
            Requantize(name="r", inputs=("x",), output="y", scale=-1.0),
            [spec("x", SHAPE), spec("y", SHAPE)], "scale -1.0; allowed: a positive",
        ),
        (
            Concat(name="c", inputs=("x",), output="y"),
            [spec("x", SHAPE), spec("y", SHAPE)], "it takes two or more",
        ),
        (
            Add(name="a", inputs=("x", "x"), output="y", scales=(0.5, 0.5), offset=0.0, shift=7),
            [spec("x", SHAPE), spec("y", SHAPE)], "shift 7; allowed: 0, 128",
        ),
        (
            Add(name="a", inputs=("x", "x"), output="y", scales=(0.5, 0.5), offset=0.0),
            [spec("x", (1, 4, 1, 6)), spec("y", SHAPE)], r"shape \(1, 4, 1, 6\); the output has",
        ),
        (
            Relu(name="r", inputs=("x",), output="y"),
            [spec("x", (1, 4, 1, 1)), spec("y", SHAPE)], r"shape \(1, 4, 1, 1\); the output has",
        ),
        (
            Interleave(name="i", inputs=("x", "x"), output="y", factors=(2, 2)),
            [spec("x", (1, 4, 3, 3)), spec("y", SHAPE)], "2 inputs; it takes 4",
        ),
        (
            Interleave(name="i", inputs=("x", "x"), output="y", factors=(1, 2)),
            [spec("x", (1, 4, 3, 3)), spec("y", SHAPE)], r"it makes \(1, 4, 3, 6\)",
        ),
        (
            Interleave(name="i", inputs=("x",), output="y", factors=(0, 1)),
            [spec("x", SHAPE), spec("y", SHAPE)], r"factors \(0, 1\); allowed: 1 and more",
        ),
        (
            Interleave(name="i", inputs=("x", "x"), output="y", factors=(1, 2)),
            [spec("x", (1, 8)), spec("y", (1, 16))], r"allowed: one \(1, C, H, W\)",
        ),
        (
            Reshape(name="r", inputs=("x",), output="y"),
            [spec("x", SHAPE), spec("y", (1, 143))], "has other elements",
        ),
    ],
)  # fmt: skip
def test_refused_operators(layer, specs, message):
    with pytest.raises(NetworkError, match=message):
        network_of(layer, specs)


def test_order_and_names():
    tensors = {n: TensorSpec(n, (1, 4)) for n in "xyz"}
    first = Relu(name="first", inputs=("x",), output="y")
    second = Relu(name="second", inputs=("y",), output="z")
    Network("ok", ("x",), ("z", "y"), tensors, (first, second), {})
    for changes, message in (
        ({"layers": (second, first)}, "layer second: it reads 'y', which nothing before it writes"),
        ({"layers": (first, replace(second, name="first"))}, "two layers have the same name"),
        ({"layers": (first, replace(second, output="y"))}, "'y', which is written before"),
        ({"layers": (first, replace(second, output="q"))}, "'q' is no tensor of the network"),
        ({"layers": (first,)}, "nothing writes the output 'z'"),
        ({"outputs": ("y",), "layers": (first,)}, "nothing writes the tensor 'z'"),
        ({"inputs": ("q",)}, "input 'q' is no tensor of it"),
        ({"outputs": ()}, "it needs an input and an output"),
    ):
        fields = {
            "name": "n", "inputs": ("x",), "outputs": ("z",), "tensors": tensors,
            "layers": (first, second), "constants": {}, **changes,
        }  # fmt: skip
        with pytest.raises(NetworkError, match=message):
            Network(**fields)


def test_every_layer_is_listed():
    from tvm_ext.codegen.network_reference import _RULES

    assert set(_RULES) == set(LAYERS)
