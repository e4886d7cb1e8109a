"""What stays on the CPU, and the reason that it gives."""

import re

import numpy as np
import pytest

from tests.codegen.qdq_models import QdqModel, partitioned


def _conv(q, x, channels=6, filters=5, **attributes):
    w = q.weight((filters, channels // attributes.get("group", 1), 3, 3))
    return q.op("Conv", [x, w, q.bias(x, w, filters)], 0.1, **attributes)


def _float_convolution(q, x):
    w = q.constant("float_w", q.rng.normal(size=(5, 6, 1, 1)).astype("float32"))
    q.output(q.op("Conv", [x, w]))


def _asymmetric_weights(q, x):
    values = q.rng.integers(0, 256, (5, 6, 1, 1)).astype("uint8")
    values[0, :2] = [[[0]], [[255]]]
    q.output(q.op("Conv", [x, q.given_weight(values, np.float32(0.01), np.uint8(7))], 0.2))


def _grouped(q, x):
    q.output(_conv(q, x, group=2, filters=4))


def _depth_multiplier(q, x):
    q.output(_conv(q, x, group=6, filters=12))


def _constant_added(q, x):
    y = q.op("Conv", [x, q.weight((6, 6, 1, 1))], 0.1)
    pooled = q.node("GlobalAveragePool", [y], "pooled")
    shift = q.constant("shift", np.float32(1.5))
    q.output(q.op("Add", [pooled, shift]))


def _constants_by_channel(q, x):
    y = _conv(q, x)
    shift = q.constant("shift", np.ones((1, 5, 1, 1), "float32"))
    q.output(q.op("Add", [y, shift]))


def _divided_by_zero(q, x):
    q.output(q.op("Div", [_conv(q, x), q.constant("zero", np.float32(0))]))


def _broadcast(q, x):
    y = q.op("Conv", [x, q.weight((6, 6, 1, 1))], 0.1)
    row = q.op("MaxPool", [y], 0.1, kernel_shape=[9, 1])
    q.output(q.op("Mul", [y, row], 0.1))


def _outer_product(q, x):
    y = q.op("Conv", [x, q.weight((6, 6, 1, 1))], 0.1)
    row = q.op("MaxPool", [y], 0.1, kernel_shape=[9, 1])
    column = q.op("MaxPool", [y], 0.1, kernel_shape=[1, 8])
    q.output(q.op("Mul", [row, column], 0.1))


def _linear(q, x):
    y = q.op("Conv", [x, q.weight((6, 6, 1, 1))], 0.1)
    scales = q.constant("scales", np.array([1, 1, 2, 2], "float32"))
    q.output(q.op("Resize", [y, "", scales], 0.1, mode="linear"))


def _read_twice(q, x):
    value = q.node("Conv", [x, q.weight((5, 6, 1, 1))], "conv")
    q.raw_output(q.node("Tanh", [value], "tanh"))
    q.output(q.op("Relu", [value]))


def _dilated_pool(q, x):
    y = _conv(q, x)
    q.output(q.op("MaxPool", [y], 0.1, kernel_shape=[2, 2], dilations=[2, 2]))


def _other_axis(q, x):
    y = _conv(q, x)
    q.output(q.op("Concat", [y, y], 0.1, axis=2))


def _unknown_operator(q, x):
    q.output(q.op("Tanh", [_conv(q, x)], 0.01))


def _overflowing(q, x):
    values = np.full((1, 6, 1, 1), 127, "int8")
    w = q.given_weight(values, np.float32(0.01), np.int8(0))
    bias = q.given_weight(np.array([2**31 - 1], "int32"), np.float32(0.0005), np.int32(0))
    q.output(q.op("Conv", [x, w, bias], 0.1))


def _wide_stride(q, x):
    q.output(_conv(q, x, strides=[300, 1], pads=[300, 1, 300, 1]))


@pytest.mark.parametrize(
    ("build", "operator", "reason"),
    [
        (_float_convolution, "nn.conv2d", "its weights aren't dequantised constants"),
        (
            _asymmetric_weights, "nn.conv2d",
            "weights less their zero point from -7 to 248; allowed: -128 to 127",
        ),
        (_grouped, "nn.conv2d", "2 groups of 6 channels to 4; allowed: 1 group"),
        (_depth_multiplier, "nn.conv2d", "6 groups of 6 channels to 12; allowed"),
        (_constant_added, "nn.avg_pool2d", "a constant add behind it; allowed: ReLU, Clip"),
        (
            _constants_by_channel, "add",
            r"a constant of shape \(1, 5, 1, 1\) behind it; allowed: one value",
        ),
        (_divided_by_zero, "divide", "a division by 0 behind it; allowed: other constants"),
        (
            _broadcast, "multiply",
            r"shapes \(1, 6, 9, 8\) and \(1, 6, 1, 8\); allowed: equal ones, or one value a ch",
        ),
        (_outer_product, "multiply", r"shapes \(1, 6, 1, 8\) and \(1, 6, 9, 1\); allowed"),
        (_linear, "image.resize2d", "method linear, .*; allowed: nearest_neighbor"),
        (_read_twice, "nn.relu", "its real value conv is read by 2 operators; allowed"),
        (_dilated_pool, "nn.max_pool2d", r"pool dilation \(2, 2\); allowed: \(1, 1\)"),
        (_other_axis, "concat", "a concatenation along axis 2; allowed: 1"),
        (_unknown_operator, "tanh", "the accelerator has no such operator"),
        (_overflowing, "nn.conv2d", r"largest possible sum 2147\d+; allowed: 0 to 2147483647"),
        (_wide_stride, "nn.conv2d", "stride 300; allowed: 1 to 255"),
    ],
)  # fmt: skip
def test_reason(build, operator, reason):
    q = QdqModel()
    build(q, q.input("x", (1, 6, 9, 8)))
    found = {r.operator: r for r in partitioned(q.model()).refusals}
    assert operator in found, found
    assert re.search(reason, found[operator].reason), found[operator].reason


def test_depthwise_stays_where_the_hardware_has_none():
    q = QdqModel()
    x = q.input("x", (1, 6, 9, 8))
    y = _conv(q, _conv(q, x, filters=6), filters=6, group=6, pads=[1, 1, 1, 1])
    q.output(_conv(q, y))
    found = partitioned(q.model(), depthwise="none")
    assert [len(s.network.layers) for s in found.subgraphs] == [1, 1]
    assert [r.operator for r in found.refusals] == ["nn.conv2d"]
    assert "depthwise=none; allowed with: software, hardware" in found.refusals[0].reason
    assert found.macs == partitioned(q.model()).macs
    assert found.offloaded_macs == found.macs - 6 * 7 * 6 * 9
    assert "2 subgraphs" in str(found) and "a depthwise convolution" in str(found)
