"""The network's reference against ONNX Runtime's quantised operators, bit for bit, and by hand."""

import numpy as np
import pytest

from tests.codegen.networks import computed, network_of, spec
from tests.codegen.onnx_operators import MICROSOFT, integers, onnxruntime_result, quantization
from tvm_ext.codegen.arithmetic import add_registers, product_scales
from tvm_ext.codegen.network_elementwise import (
    Abs,
    Add,
    LeakyRelu,
    Maximum,
    Minimum,
    Multiply,
    Relu,
    Requantize,
)
from tvm_ext.codegen.network_layers import Conv, MatMul, window_shape
from tvm_ext.codegen.network_moves import Concat, Interleave, Reshape
from tvm_ext.codegen.network_pool import Pool
from tvm_ext.codegen.network_reference import requantize, wrap_int32

# Channels, filters, rows, columns, kernel, strides, dilations, pads, groups.
CONVS = [
    (3, 5, 7, 9, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 1),
    (17, 33, 8, 8, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 1),
    (5, 7, 9, 8, (3, 3), (2, 2), (1, 1), (0, 0, 1, 1), 1),
    (4, 3, 11, 12, (3, 2), (1, 2), (2, 3), (2, 1, 0, 3), 1),
    (3, 16, 15, 15, (7, 7), (2, 2), (1, 1), (3, 3, 3, 3), 1),
    (9, 9, 10, 7, (3, 3), (2, 1), (1, 1), (1, 1, 1, 1), 9),
    (16, 16, 6, 6, (5, 5), (1, 1), (1, 1), (2, 2, 2, 2), 16),
]


@pytest.mark.parametrize("case", CONVS)
@pytest.mark.parametrize("per_channel", [False, True])
def test_conv(case, per_channel):
    cin, cout, rows, columns, kernel, strides, dilations, pads, groups = case
    rng = np.random.default_rng(cin * cout + per_channel)
    (sx, zx), (sy, zy) = quantization(rng, "int8"), quantization(rng, "int8", 0.3, 2.0)
    x = integers(rng, (1, cin, rows, columns))
    w = integers(rng, (cout, cin // groups, *kernel))
    sw = rng.uniform(0.001, 0.02, cout if per_channel else ()).astype("float32")
    b = rng.integers(-3000, 3000, cout).astype("int32")
    expected = onnxruntime_result(
        "QLinearConv",
        {0: x},
        {1: sx, 2: zx, 3: w, 4: sw, 5: np.zeros(sw.shape, "int8"), 6: sy, 7: zy, 8: b},
        strides=strides,
        dilations=dilations,
        pads=pads,
        group=groups,
    )
    layer = Conv(
        name="c", inputs=("x",), output="y", weight="w", bias="b", scales="s", strides=strides,
        dilations=dilations, pads=pads, groups=groups,
    )  # fmt: skip
    scales = np.broadcast_to(product_scales(sx, sw, sy), cout)
    shape = (1, cout, *window_shape((rows, columns), kernel, strides, dilations, pads))
    network = network_of(
        layer, [spec("x", x.shape, sx, zx), spec("y", shape, sy, zy)], {"w": w, "b": b, "s": scales}
    )
    np.testing.assert_array_equal(computed(network, x), expected)
    assert network.macs() == expected.size * w[0].size


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 63, 10), (5, 64, 17), (3, 200, 1)])
def test_matmul(rows, inner, columns):
    rng = np.random.default_rng(inner)
    (sx, zx), (sy, zy) = quantization(rng, "int8"), quantization(rng, "int8", 1.0, 3.0)
    x, w = integers(rng, (rows, inner)), integers(rng, (inner, columns))
    sw = rng.uniform(0.001, 0.02, columns).astype("float32")
    b = rng.integers(-3000, 3000, columns).astype("int32")
    expected = onnxruntime_result(
        "QGemm",
        {0: x},
        {1: sx, 2: zx, 3: w, 4: sw, 5: np.zeros(columns, "int8"), 6: b, 7: sy, 8: zy},
        MICROSOFT,
    )
    layer = MatMul(name="m", inputs=("x",), output="y", weight="w", bias="b", scales="s")
    constants = {"w": w, "b": b, "s": product_scales(sx, sw, sy)}
    specs = [spec("x", x.shape, sx, zx), spec("y", (rows, columns), sy, zy)]
    network = network_of(layer, specs, constants)
    np.testing.assert_array_equal(computed(network, x), expected)
    assert network.macs() == rows * inner * columns


def _grid(dtype):
    """All pairs of values."""
    values = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
    return (a.reshape(1, 1, 256, 256) for a in np.meshgrid(values, values))


def _three(rng, dtype, powers_of_two):
    """Scales and zero points of two inputs and a result; powers of two make ties common."""
    found = [quantization(rng, dtype) for _ in range(3)]
    if powers_of_two:
        found = [(np.float32(2.0 ** -rng.integers(2, 8)), z) for _, z in found]
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_add(seed, dtype):
    rng = np.random.default_rng(seed)
    shift = 128 if dtype == "uint8" else 0
    a, b = _grid(dtype)
    (sa, za), (sb, zb), (sy, zy) = _three(rng, dtype, seed % 2)
    expected = onnxruntime_result(
        "QLinearAdd", {0: a, 3: b}, {1: sa, 2: za, 4: sb, 5: zb, 6: sy, 7: zy}, MICROSOFT
    )
    specs = [
        spec("a", a.shape, sa, int(za) - shift),
        spec("b", a.shape, sb, int(zb) - shift),
        spec("y", a.shape, sy, int(zy) - shift),
    ]
    scales, offset = add_registers(*specs, shift)
    layer = Add(name="a", inputs=("a", "b"), output="y", scales=scales, offset=offset, shift=shift)
    signed = [(x.astype(int) - shift).astype("int8") for x in (a, b)]
    result = computed(network_of(layer, specs), *signed)
    np.testing.assert_array_equal(result, expected.astype(int) - shift)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_multiply(seed, dtype):
    rng = np.random.default_rng(seed)
    shift = 128 if dtype == "uint8" else 0
    a, b = _grid(dtype)
    (sa, za), (sb, zb), (sy, zy) = _three(rng, dtype, seed % 2)
    expected = onnxruntime_result(
        "QLinearMul", {0: a, 3: b}, {1: sa, 2: za, 4: sb, 5: zb, 6: sy, 7: zy}, MICROSOFT
    )
    specs = [
        spec("a", a.shape, sa, int(za) - shift),
        spec("b", a.shape, sb, int(zb) - shift),
        spec("y", a.shape, sy, int(zy) - shift),
    ]
    scale = float(np.float32(np.float32(sa * sb) / sy))
    layer = Multiply(name="m", inputs=("a", "b"), output="y", scale=scale, shift=shift)
    signed = [(x.astype(int) - shift).astype("int8") for x in (a, b)]
    result = computed(network_of(layer, specs), *signed)
    np.testing.assert_array_equal(result, expected.astype(int) - shift)


@pytest.mark.parametrize("shape", [(1, 33, 7, 7), (1, 5, 4, 4), (1, 64, 1, 3)])
@pytest.mark.parametrize("ratio", [0.37, 0.25])
def test_global_average_pool(shape, ratio):
    rng = np.random.default_rng(shape[1])
    x = integers(rng, shape)
    (sx, zx), (_, zy) = quantization(rng, "int8"), quantization(rng, "int8")
    sy = np.float32(sx * ratio)
    expected = onnxruntime_result(
        "QLinearGlobalAveragePool",
        {0: x},
        {1: sx, 2: zx, 3: sy, 4: zy},
        MICROSOFT,
        channels_last=0,
    )
    layer = Pool(name="p", inputs=("x",), output="y", kind="global_average", kernel=shape[2:])
    specs = [spec("x", shape, sx, zx), spec("y", (*shape[:2], 1, 1), sy, zy)]
    np.testing.assert_array_equal(computed(network_of(layer, specs), x), expected)


@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize(("kernel", "pads"), [((2, 2), (0, 0, 0, 0)), ((3, 3), (1, 1, 1, 1))])
def test_average_pool_is_at_most_one_step_off(kernel, pads, count_include_pad):
    rng = np.random.default_rng(kernel[0] + count_include_pad)
    x, (sx, zx), (_, zy) = (
        integers(rng, (1, 13, 9, 12)),
        quantization(rng, "int8"),
        quantization(rng, "int8"),
    )
    sy = np.float32(sx * 0.73)
    expected = onnxruntime_result(
        "QLinearAveragePool",
        {0: x},
        {1: sx, 2: zx, 3: sy, 4: zy},
        MICROSOFT,
        kernel_shape=kernel,
        strides=[2, 1],
        pads=pads,
        count_include_pad=count_include_pad,
    )
    layer = Pool(
        name="p", inputs=("x",), output="y", kind="average", kernel=kernel, strides=(2, 1),
        pads=pads, count_include_pad=bool(count_include_pad),
    )  # fmt: skip
    specs = [spec("x", x.shape, sx, zx), spec("y", expected.shape, sy, zy)]
    difference = np.abs(computed(network_of(layer, specs), x).astype(int) - expected)
    assert difference.max() <= 1
    assert np.count_nonzero(difference) <= 0.01 * difference.size


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 0, 1, 2)])
def test_max_pool(pads):
    x = integers(np.random.default_rng(5), (1, 5, 9, 8))
    expected = onnxruntime_result(
        "MaxPool", {0: x}, {}, kernel_shape=[3, 3], strides=[2, 1], pads=pads
    )
    layer = Pool(
        name="p", inputs=("x",), output="y", kind="max", kernel=(3, 3), strides=(2, 1), pads=pads
    )
    network = network_of(layer, [spec("x", x.shape), spec("y", expected.shape)])
    np.testing.assert_array_equal(computed(network, x), expected)


def _every_value():
    return np.arange(-128, 128).astype("int8").reshape(1, 1, 16, 16)


def test_leaky_relu_by_hand():
    layer = LeakyRelu(name="l", inputs=("x",), output="y", scale=0.5, negative_scale=0.125)
    network = network_of(layer, [spec("x", (1, 6), 1, 2), spec("y", (1, 6), 2, -1)])
    # Centred -130, -22, -1, 0, 5, 125; scaled -16.25, -2.75, -0.125, 0, 2.5, 62.5.
    x = np.array([[-128, -20, 1, 2, 7, 127]], "int8")
    assert computed(network, x).tolist() == [[-17, -4, -1, -1, 1, 61]]


def test_requantize_by_hand():
    layer = Requantize(name="r", inputs=("x",), output="y", scale=0.5, clamp=(3, 40))
    network = network_of(layer, [spec("x", (1, 5), 1, 1), spec("y", (1, 5), 2, 3)])
    # Centred -129, 4, 6, 10, 126; scaled -64.5, 2, 3, 5, 63; zero point 3.
    x = np.array([[-128, 5, 7, 11, 127]], "int8")
    assert computed(network, x).tolist() == [[3, 5, 6, 8, 40]]


def test_halves_go_to_even_and_sums_wrap():
    assert requantize(np.array([1, 3, -1, -3]), np.float32(0.5), 10).tolist() == [10, 12, 10, 8]
    assert requantize(np.array([2**31 - 1]), np.float32(1), 0).tolist() == [127]
    assert wrap_int32(np.array([2**31, -(2**31) - 1])).tolist() == [-(2**31), 2**31 - 1]


@pytest.mark.parametrize(
    ("kind", "zero", "expected"),
    [
        (Relu, -3, lambda x: np.maximum(x, -3)),
        (Abs, 5, lambda x: np.clip(np.abs(x - 5) + 5, -128, 127)),
    ],
)
def test_one_operand(kind, zero, expected):
    x = _every_value()
    specs = [spec(n, x.shape, 0.1000000014901161193847656, zero) for n in "xy"]
    network = network_of(kind(name="k", inputs=("x",), output="y"), specs)
    np.testing.assert_array_equal(computed(network, x), expected(x.astype(int)))


@pytest.mark.parametrize(("kind", "expected"), [(Minimum, np.minimum), (Maximum, np.maximum)])
def test_comparisons(kind, expected):
    a, b = _grid("int8")
    specs = [spec(n, a.shape, 0.5, 7) for n in "aby"]
    network = network_of(kind(name="k", inputs=("a", "b"), output="y"), specs)
    np.testing.assert_array_equal(computed(network, a, b), expected(a, b))


def test_moves():
    rng = np.random.default_rng(3)
    a, b = integers(rng, (1, 3, 2, 2)), integers(rng, (1, 5, 2, 2))
    joined = network_of(
        Concat(name="c", inputs=("a", "b"), output="y"),
        [spec("a", a.shape), spec("b", b.shape), spec("y", (1, 8, 2, 2))],
    )
    np.testing.assert_array_equal(computed(joined, a, b), np.concatenate([a, b], 1))
    # Rows of a, b take turns; both have pixels 0, 1, 2, ... in order.
    halves = network_of(
        Interleave(name="i", inputs=("a", "b"), output="y", factors=(2, 1)),
        [spec("a", (1, 1, 2, 2)), spec("b", (1, 1, 2, 2)), spec("y", (1, 1, 4, 2))],
    )
    even, odd = (np.array(v, "int8").reshape(1, 1, 2, 2) for v in ([0, 1, 4, 5], [2, 3, 6, 7]))
    assert computed(halves, even, odd).ravel().tolist() == list(range(8))
    flat = network_of(
        Reshape(name="r", inputs=("a",), output="y"), [spec("a", a.shape), spec("y", (1, 12))]
    )
    np.testing.assert_array_equal(computed(flat, a), a.reshape(1, 12))
