"""Each pattern alone, in QDQ form, against ONNX Runtime."""

import numpy as np
import pytest

from tests.codegen.qdq_models import QdqModel, assert_same_bits, partitioned
from tvm_ext.codegen.network_elementwise import Relu, Requantize
from tvm_ext.codegen.network_pool import Pool

DTYPES = pytest.mark.parametrize("dtype", ["int8", "uint8"])


def zero_of(dtype, zero=3):
    return zero + 128 * (dtype == "uint8")


def conv_behind(q, x, channels, zero=3):
    """Regions need a product: a 1x1 convolution."""
    w = q.weight((5, channels, 1, 1))
    return q.op("Conv", [x, w, q.bias(x, w, 5)], 0.08, zero)


@DTYPES
@pytest.mark.parametrize(
    ("channels", "filters", "group", "attributes"),
    [
        (3, 17, 1, {"pads": [1, 1, 1, 1]}),
        (16, 16, 16, {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        (5, 4, 1, {"dilations": [2, 1], "pads": [0, 2, 1, 0]}),
        (4, 6, 1, {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
        (4, 6, 1, {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    ],
)
@pytest.mark.parametrize("activation", [None, "Relu", "Clip"])
def test_convolution(dtype, channels, filters, group, attributes, activation):
    q = QdqModel(dtype)
    x = q.input("x", (1, channels, 9, 8), zero=zero_of(dtype))
    w = q.weight((filters, channels // group, 3, 3))
    inputs = [x, w, q.bias(x, w, filters)]
    if activation is None:
        y = q.op("Conv", inputs, 0.11, zero_of(dtype), group=group, **attributes)
    else:
        value = q.node("Conv", inputs, "conv", group=group, **attributes)
        limits = [q.constant("low", np.float32(0)), q.constant("high", np.float32(6))]
        # The range goes beyond 6, so that the limit isn't the quantiser's own.
        y = q.op(
            activation,
            [value, *(limits if activation == "Clip" else [])],
            0.05,
            zero_of(dtype, -90),
        )
    q.output(y)
    assert_same_bits(q.model())


@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("per_tensor", [False, True])
def test_gemm(trans_b, per_tensor):
    q = QdqModel()
    x = q.input("x", (3, 65))
    shape = (7, 65) if trans_b else (65, 7)
    if per_tensor:
        values = q.rng.integers(-127, 128, shape).astype("int8")
        w = q.given_weight(values, np.float32(0.004), np.int8(0))
    else:
        w = q.weight(shape, axis=0 if trans_b else 1)
    q.output(q.op("Gemm", [x, w, q.bias(x, w, 7)], 0.09, transB=trans_b))
    assert_same_bits(q.model())


def test_matmul_without_bias():
    q = QdqModel()
    x = q.input("x", (2, 31))
    values = q.rng.integers(-127, 128, (31, 6)).astype("int8")
    q.output(q.op("MatMul", [x, q.given_weight(values, np.float32(0.01), np.int8(0))], 0.15))
    assert_same_bits(q.model())


@DTYPES
@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_sums_and_products(dtype, op):
    q = QdqModel(dtype)
    x = q.input("x", (1, 6, 16, 16), 0.031, zero_of(dtype, -7))
    y = conv_behind(q, x, 6, zero_of(dtype, 9))
    z = conv_behind(q, x, 6, zero_of(dtype, 1))
    q.output(q.op(op, [y, z], 0.13 if op == "Add" else 0.4, zero_of(dtype, -3)))
    assert_same_bits(q.model())


@DTYPES
@pytest.mark.parametrize("op", ["Add", "Mul", "Max", "Min"])
@pytest.mark.parametrize("first", [False, True])
def test_one_value_a_channel(dtype, op, first):
    """As squeeze-and-excite: it is repeated over rows and columns."""
    q = QdqModel(dtype)
    x = q.input("x", (1, 6, 9, 8), 0.031, zero_of(dtype, -7))
    y = conv_behind(q, x, 6, zero_of(dtype, 9))
    gate = q.op("GlobalAveragePool", [y], 0.08, zero_of(dtype, 9))
    operands = [gate, y] if first else [y, gate]
    same = op in ("Max", "Min")
    zero = zero_of(dtype, 9 if same else -3)
    q.output(q.op(op, operands, 0.08 if same or op == "Add" else 0.13, zero))
    assert_same_bits(q.model())


@DTYPES
@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_with_one_quantised_constant(dtype, op, first, seed):
    """ONNX Runtime makes it QLinearAdd or QLinearMul of the constant's integer."""
    q = QdqModel(dtype, seed)
    x = conv_behind(q, q.input("x", (1, 6, 16, 16), zero=zero_of(dtype)), 6, zero_of(dtype, 10))
    zero, value = (zero_of(dtype, int(v)) for v in q.rng.integers(-60, 60, 2))
    scale = float(np.float32(q.rng.uniform(0.01, 0.2)))
    constant = q.dequantize(q.constant("c", np.array([value], dtype)), scale, zero)
    high = 0.08 if op == "Add" else 0.08 * scale * max(abs(value - zero), 1)
    operands = [constant, x] if first else [x, constant]
    q.output(q.op(op, operands, float(np.float32(high)), zero_of(dtype, 4)))
    assert_same_bits(q.model())


@DTYPES
@pytest.mark.parametrize("factors", [(2, 2), (1, 3), (4, 1)])
@pytest.mark.parametrize(
    ("mode", "rounding"), [("asymmetric", "floor"), ("half_pixel", "round_prefer_floor")]
)
def test_pixels_repeated(dtype, factors, mode, rounding):
    q = QdqModel(dtype)
    y = conv_behind(q, q.input("x", (1, 6, 5, 4), zero=zero_of(dtype)), 6, zero_of(dtype))
    scales = q.constant("scales", np.array([1, 1, *factors], "float32"))
    q.output(
        q.op(
            "Resize", [y, "", scales], 0.08, zero_of(dtype), mode="nearest",
            coordinate_transformation_mode=mode, nearest_mode=rounding,
        )
    )  # fmt: skip
    assert_same_bits(q.model())


def test_sum_with_relu():
    q = QdqModel("uint8")
    x = q.input("x", (1, 6, 8, 8), zero=131)
    total = q.node("Add", [conv_behind(q, x, 6, 120), conv_behind(q, x, 6, 131)], "total")
    q.output(q.op("Relu", [total], 0.06, 0))
    assert_same_bits(q.model())


@DTYPES
@pytest.mark.parametrize("scale", [0.03, 0.0713])
def test_global_average_pool_and_flatten(dtype, scale):
    q = QdqModel(dtype)
    x = q.input("x", (1, 6, 7, 7), zero=zero_of(dtype))
    pooled = q.op(
        "GlobalAveragePool", [conv_behind(q, x, 6, zero_of(dtype))], scale / 4, zero_of(dtype)
    )
    flat = q.op("Flatten", [pooled], scale / 4, zero_of(dtype))
    w = q.weight((12, 5))
    q.output(q.op("Gemm", [flat, w, q.bias(flat, w, 12)], 0.004, zero_of(dtype), transB=1))
    assert_same_bits(q.model())


@pytest.mark.parametrize("keepdims", [0, 1])
def test_mean_over_the_image(keepdims):
    q = QdqModel("uint8")
    x = q.input("x", (1, 6, 9, 5), zero=131)
    y = conv_behind(q, x, 6, 131)
    q.output(q.op("ReduceMean", [y], 0.001, 131, axes=[2, 3], keepdims=keepdims))
    # ONNX Runtime takes the mean in float.
    assert_same_bits(q.model(), tolerance=1)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [
        ([3, 3], [2, 1], [0, 0, 0, 0]),
        ([3, 3], [2, 1], [1, 1, 1, 1]),
        ([2, 5], [1, 3], [0, 2, 1, 0]),
        ([1, 7], [1, 1], [0, 3, 0, 3]),
        ([9, 8], [1, 1], [2, 2, 2, 2]),
    ],
)
def test_average_pool(kernel, strides, pads, count):
    """ONNX Runtime adds real values in float32: at ties a result may be one step off."""
    q = QdqModel("uint8")
    y = conv_behind(q, q.input("x", (1, 6, 9, 8), zero=131), 6, 131)
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    q.output(q.op("AveragePool", [y], 0.05, 131, **attributes, count_include_pad=count))
    assert_same_bits(q.model(), tolerance=1)


@DTYPES
@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 0, 1, 1]}, {"ceil_mode": 1}])
def test_max_pool(dtype, attributes):
    q = QdqModel(dtype)
    y = conv_behind(q, q.input("x", (1, 6, 9, 8), zero=zero_of(dtype)), 6, zero_of(dtype))
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], **attributes}
    q.output(q.op("MaxPool", [y], 0.08, zero_of(dtype), **pool))
    assert_same_bits(q.model())


@DTYPES
def test_concatenation_of_different_scales(dtype):
    q = QdqModel(dtype)
    x = q.input("x", (1, 6, 8, 8), 0.1, zero_of(dtype))
    y = conv_behind(q, x, 6, zero_of(dtype, -20))
    q.output(q.op("Concat", [x, y, x], 0.077, zero_of(dtype, 5), axis=1))
    assert_same_bits(q.model())


@DTYPES
@pytest.mark.parametrize(("alpha", "tolerance"), [(0.01, 0), (0.23, 0), (0.25, 1)])
def test_leaky_relu(dtype, alpha, tolerance):
    """With 0.25 every other negative value is a tie, where the model's own roundings decide."""
    q = QdqModel(dtype)
    y = conv_behind(q, q.input("x", (1, 6, 16, 8), zero=zero_of(dtype)), 6, zero_of(dtype, 20))
    q.output(q.op("LeakyRelu", [y], 0.04, zero_of(dtype, -50), alpha=alpha))
    assert_same_bits(q.model(), tolerance)


@pytest.mark.parametrize(("op", "arity"), [("Abs", 1), ("Max", 2), ("Min", 2)])
def test_comparisons_and_magnitudes(op, arity):
    q = QdqModel("uint8")
    x = q.input("x", (1, 6, 8, 8), zero=131)
    branches = [conv_behind(q, x, 6, 131) for _ in range(arity)]
    q.output(q.op(op, branches, 0.08, 131))
    assert_same_bits(q.model())


@DTYPES
@pytest.mark.parametrize("scale", [0.08, 0.05, 0.04, 0.0291])
@pytest.mark.parametrize("op", ["Relu", "Clip"])
def test_activation_behind_its_own_quantisation(dtype, scale, op):
    q = QdqModel(dtype)
    y = conv_behind(q, q.input("x", (1, 6, 16, 16), zero=zero_of(dtype)), 6, zero_of(dtype, 20))
    limits = [q.constant("low", np.float32(-1)), q.constant("high", np.float32(4))]
    q.output(q.op(op, [y, *(limits if op == "Clip" else [])], scale, zero_of(dtype, 20)))
    assert_same_bits(q.model())


def test_relu_of_one_scale_is_a_comparison():
    q = QdqModel()
    y = conv_behind(q, q.input("x", (1, 6, 8, 8)), 6, 20)
    q.output(q.op("Relu", [y], 0.08, 20))
    layers = partitioned(q.model()).subgraphs[0].network.layers
    assert [type(layer) for layer in layers][-1] is Relu


def test_pool_with_another_scale_is_requantised():
    q = QdqModel()
    y = conv_behind(q, q.input("x", (1, 6, 8, 8)), 6)
    q.output(q.op("MaxPool", [y], 0.05, -4, kernel_shape=[2, 2]))
    layers = partitioned(q.model()).subgraphs[0].network.layers
    assert [type(layer) for layer in layers][-2:] == [Pool, Requantize]
    assert_same_bits(q.model())


@DTYPES
def test_hard_swish_in_parts(dtype):
    """x * clip(x + 3, 0, 6) / 6, each part quantised: sums and quotients with constants."""
    q = QdqModel(dtype)
    x = conv_behind(q, q.input("x", (1, 6, 16, 16), zero=zero_of(dtype)), 6, zero_of(dtype, 10))
    three, six = q.constant("three", np.float32(3)), q.constant("six", np.float32(6))
    shifted = q.op("Add", [x, three], 0.09, zero_of(dtype, -30))
    zero, high = q.constant("zero", np.float32(0)), q.constant("high", np.float32(6))
    gate = q.op("Clip", [shifted, zero, high], 6 / 255, zero_of(dtype, -128))
    product = q.op("Mul", [x, gate], 0.3, zero_of(dtype, -120))
    q.output(q.op("Div", [product, six], 0.05, zero_of(dtype, -120)))
    assert_same_bits(q.model())


@pytest.mark.parametrize(
    ("op", "left", "value"), [("Sub", False, 1.7), ("Mul", True, -0.6), ("Add", True, 0.3)]
)
def test_affine_with_one_constant(op, left, value):
    q = QdqModel("uint8")
    x = conv_behind(q, q.input("x", (1, 6, 16, 16), zero=131), 6, 131)
    operands = [x, q.constant("c", np.float32(value))]
    q.output(q.op(op, operands[::-1] if left else operands, 0.061, 120))
    assert_same_bits(q.model())


def test_hard_sigmoid():
    q = QdqModel("uint8")
    x = conv_behind(q, q.input("x", (1, 6, 16, 16), zero=131), 6, 131)
    q.output(q.op("HardSigmoid", [x], 1 / 255, 0, alpha=1 / 6, beta=0.5))
    assert_same_bits(q.model())


def test_batch_norm_is_folded_within_one_step():
    q = QdqModel("uint8")
    x = q.input("x", (1, 6, 8, 8), zero=131)
    w = q.weight((9, 6, 3, 3))
    conv = q.node("Conv", [x, w, q.bias(x, w, 9)], "conv", pads=[1, 1, 1, 1])
    statistics = [q.rng.uniform(0.5, 1.5, 9).astype("float32") for _ in range(4)]
    # A negative factor turns the sign of its channel's weights.
    statistics[0][4] *= -1
    names = [q.constant(f"bn{i}", a) for i, a in enumerate(statistics)]
    norm = q.node("BatchNormalization", [conv, *names], "norm")
    q.output(q.op("Relu", [norm], 0.05, 0))
    assert_same_bits(q.model(), tolerance=1)


def test_weights_with_a_zero_point_in_reach_are_exact():
    q = QdqModel("uint8")
    x = q.input("x", (1, 6, 8, 8), zero=131)
    values = q.rng.integers(3, 256, (5, 6, 3, 3)).astype("uint8")
    w = q.given_weight(values, np.float32(0.004), np.uint8(129))
    q.output(q.op("Conv", [x, w, q.bias(x, w, 5)], 0.1, 131))
    assert_same_bits(q.model())
