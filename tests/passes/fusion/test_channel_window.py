"""Averages over neighbouring channels: which pools are, and that a normalisation is one kernel."""

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

import tvm_ext
from tests.passes.relax_models import array, const, module, run
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.capabilities import takes_pool
from tvm_ext.passes.fusion.channel_window import channel_window
from tvm_ext.target import resolve

SHAPE = (2, 40, 9, 7)
NHWC = {"layout": "NHWC", "count_include_pad": True}
# Alpha, beta and bias of AlexNet and ZFNet, of GoogLeNet's paper, and of a plain quotient.
NUMBERS = ((1e-4, 0.75, 1.0), (5e-4, 0.75, 2.0), (0.5, 1.0, 1.0))


def _call(pool, shape, *args, **options):
    mod = module({"x": shape}, lambda emit, x: pool(x, *args, **options))
    return df.bindings(mod["main"])[0][1]


def _normalised(emit, x, size, alpha, beta, bias):
    """Local response normalisation as the ONNX frontend writes it."""
    numbers = [relax.const(n, "float32") for n in (alpha, beta, bias)]
    before = (size - 1) // 2
    padding = (before, 0, size - 1 - before, 0)
    square = emit(op.multiply(x, x))
    mean = emit(op.nn.avg_pool2d(square, (size, 1), padding=padding, **NHWC))
    base = emit(op.add(emit(op.multiply(mean, numbers[0])), numbers[2]))
    return op.divide(x, emit(op.power(base, numbers[1])))


def _expected(x, size, alpha, beta, bias):
    x = x.astype("float64")
    before, channels = (size - 1) // 2, x.shape[1]
    padded = np.pad(x**2, ((0, 0), (before, size - 1 - before), (0, 0), (0, 0)))
    mean = sum(padded[:, i : i + channels] for i in range(size)) / size
    return x / (bias + alpha * mean) ** beta


@pytest.mark.parametrize(
    ("pool", "shape", "size", "padding", "options", "window"),
    [
        (op.nn.avg_pool2d, SHAPE, (5, 1), (2, 0, 2, 0), NHWC, (5, 2)),
        (op.nn.avg_pool2d, SHAPE, (4, 1), (1, 0, 2, 0), NHWC, (4, 1)),
        (op.nn.avg_pool2d, SHAPE, (1, 1), (0, 0), {"layout": "NHWC"}, (1, 0)),
        (op.nn.avg_pool1d, SHAPE[:3], (3,), (1, 1), NHWC | {"layout": "NWC"}, (3, 1)),
        (
            op.nn.avg_pool3d, (1, 4, 5, 6, 7), (3, 1, 1), (2, 0, 0, 0, 0, 0),
            NHWC | {"layout": "NDHWC"}, (3, 2),
        ),
        (op.nn.avg_pool2d, SHAPE, (5, 1), (2, 0, 2, 0), {"layout": "NHWC"}, None),
        (op.nn.avg_pool2d, SHAPE, (5, 1), (2, 0, 2, 0), NHWC | {"layout": "NCHW"}, None),
        (op.nn.avg_pool2d, SHAPE, (5, 1), (2, 0, 2, 0), NHWC | {"out_layout": "NCHW"}, None),
        (op.nn.avg_pool2d, SHAPE, (5, 1), (2, 0, 2, 0), NHWC | {"strides": (2, 1)}, None),
        (op.nn.avg_pool2d, SHAPE, (3, 1), (2, 0, 2, 0), NHWC | {"dilation": (2, 1)}, None),
        (op.nn.avg_pool2d, SHAPE, (5, 1), (1, 0, 1, 0), NHWC, None),
        (op.nn.avg_pool2d, SHAPE, (5, 3), (2, 1, 2, 1), NHWC, None),
        (op.nn.max_pool2d, SHAPE, (5, 1), (2, 0, 2, 0), {"layout": "NHWC"}, None),
        (op.nn.relu, SHAPE, None, None, {}, None),
    ],
)  # fmt: skip
def test_windows(pool, shape, size, padding, options, window):
    args = (size,) if size else ()
    options = options | ({"padding": padding} if padding else {})
    assert channel_window(_call(pool, shape, *args, **options)) == window


@pytest.mark.parametrize("size", [3, 4, 5, 49])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_a_normalisation_is_one_kernel(size, numbers):
    mod = module({"x": SHAPE}, lambda emit, x: _normalised(emit, x, size, *numbers))
    exe = tvm_ext.build(mod)
    assert [layer.algorithm for layer in exe.plan] == ["channel_pool"]
    x = array(6, *SHAPE)
    expected = _expected(x, size, *numbers)
    np.testing.assert_allclose(exe(x), expected, rtol=1e-5)
    np.testing.assert_allclose(run(mod, x), expected, rtol=1e-5)


def test_between_convolutions_it_stays_in_their_layout():
    """With what follows it, and no other layer than theirs."""
    first, last = array(1, 40, 3, 3, 3) / 5, array(2, 8, 40, 3, 3) / 19

    def body(emit, x):
        y = emit(op.nn.relu(emit(op.nn.conv2d(x, const(first), padding=1))))
        y = emit(_normalised(emit, y, 5, *NUMBERS[0]))
        return op.nn.conv2d(emit(op.abs(y)), const(last), padding=1)

    mod = module({"x": (1, 3, 14, 14)}, body)
    exe = tvm_ext.build(mod)
    _, middle, _ = exe.plan
    steps = ("nn.avg_pool2d", "multiply", "add", "power", "divide", "abs")
    assert (middle.algorithm, tuple(middle.ops[1:])) == ("channel_pool", steps)
    name = f"NCHW{resolve('native').lanes}c"
    assert tuple(middle.layout) == (name, name)
    x = array(6, 1, 3, 14, 14)
    expected = run(mod, x)
    np.testing.assert_allclose(exe(x), expected, atol=1e-4 * np.abs(expected).max())


def test_no_convolution_goes_on_with_it():
    """A convolution has only some of its channels at hand."""
    weight = array(0, 16, 3, 1, 1)

    def body(emit, x):
        y = emit(op.nn.conv2d(x, const(weight)))
        return op.nn.avg_pool2d(y, (3, 1), padding=(1, 0, 1, 0), **NHWC)

    mod = module({"x": (1, 3, 8, 8)}, body)
    conv, pool = (expr for _, expr in df.bindings(mod["main"]) if df.op_name(expr))
    assert not takes_pool(conv, pool)
    fused = layers(UniversalFusion(lambda one, parts: True)(mod))
    assert [layer.ops for layer in fused] == [("nn.conv2d",), ("nn.avg_pool2d",)]
    x = array(6, 1, 3, 8, 8)
    np.testing.assert_allclose(tvm_ext.build(mod)(x), run(mod, x), rtol=1e-4, atol=1e-5)


def test_other_windows_of_this_layout_have_no_kernel():
    mod = module({"x": (1, 8, 8, 4)}, lambda emit, x: op.nn.avg_pool2d(x, (3, 3), layout="NHWC"))
    (layer,) = layers(UniversalFusion()(mod))
    assert layer.fallback == "layout NHWC; only NC*, or averages along the second dimension"
