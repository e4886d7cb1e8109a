"""Shared arithmetic: exact sums, rounding, and OP_CONV against ONNX Runtime's QLinearConv."""

import numpy as np
import pytest

from tests.codegen.isa.machine import Sram, image_at, run
from tests.codegen.isa.oracle import fused, requantized, wrapped
from tests.codegen.onnx_operators import onnxruntime_result
from tvm_ext.codegen.isa.arithmetic import exact_dtype, multiply_add, product_sums, requantize


@pytest.mark.parametrize("depth", [1, 1024, 1025, 2**17 - 1, 2**17, 2**17 + 1])
def test_sums_of_the_largest_products(depth):
    left = np.full((1, depth), -128, np.int8)
    right = np.stack([left[0], np.full(depth, 127, np.int8)])
    right[:, 0] = 1
    dtype = exact_dtype(depth)
    got = product_sums(left.astype(dtype), right.astype(dtype))
    expected = [(depth - 1) * 2**14 - 128, -(depth - 1) * 128 * 127 - 128]
    assert got.dtype == np.int32
    assert got.tolist() == [[wrapped(total) for total in expected]]


def test_a_sum_of_2_to_the_31_wraps():
    full = np.full((1, 2**17), -128.0, exact_dtype(2**17))
    assert product_sums(full, full).tolist() == [[-(2**31)]]


def test_rounding_of_every_step():
    rng = np.random.default_rng(0)
    sums = rng.integers(-(2**31), 2**31, 20_000).astype(np.int32)
    sums[:8] = [0, 1, -1, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31), 3]
    for scale in (2.0**-24, 3.1e-8, 0.5, 1e-45, 3e38, -1e-8):
        got = requantize(sums, np.float32(scale), 5, -100, 100)
        with np.errstate(over="ignore"):
            product = sums.astype(np.float64).astype(np.float32) * np.float32(scale)
        finite = np.isfinite(product)
        expected = [requantized(total, scale, 5, -100, 100) for total in sums[finite][:500]]
        assert got[finite][:500].tolist() == expected
        assert (got[~finite] == np.where(product[~finite] > 0, 100, -100)).all()


def test_one_rounding_of_product_and_sum():
    rng = np.random.default_rng(1)
    values = rng.integers(-65025, 65026, 2000)
    factors = rng.uniform(-2, 2, 2000).astype(np.float32)
    addends = rng.uniform(-300, 300, 2000).astype(np.float32)
    for value, factor, addend in zip(values, factors, addends, strict=True):
        got = multiply_add(np.array(value), float(factor), float(addend))
        assert got == fused(value, factor, addend)


# Weights within 6 bits, so that ONNX Runtime's 16-bit pair sums can't saturate on old processors.
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("depth", "filters", "stride"), [(3, 5, 1), (17, 33, 2)])
def test_a_convolution_as_onnx_runtime(depth, filters, stride, per_channel):
    sram = Sram(depth + per_channel)
    rng = sram.rng
    image, weights = sram.int8(9, 8, depth), sram.int8(filters, 3, 3, depth, low=-63, high=63)
    bias = rng.integers(-3000, 3000, filters).astype(np.int32)
    sx, sy, zx, zy = np.float32(0.043), np.float32(0.21), np.int8(-11), np.int8(23)
    sw = rng.uniform(0.001, 0.02, filters if per_channel else ()).astype(np.float32)
    expected = onnxruntime_result(
        "QLinearConv",
        {0: np.ascontiguousarray(image.transpose(2, 0, 1)[np.newaxis])},
        {
            1: sx, 2: zx, 3: np.ascontiguousarray(weights.transpose(0, 3, 1, 2)), 4: sw,
            5: np.zeros(sw.shape, "int8"), 6: sy, 7: zy, 8: bias,
        },
        strides=(stride, stride),
        pads=(1, 1, 1, 1),
    )[0].transpose(1, 2, 0)  # fmt: skip
    rows, columns = expected.shape[:2]
    folded = bias - int(zx) * weights.astype(np.int64).sum((1, 2, 3))
    address, row, pixel = sram.place_image(image)
    fields = {
        "input": address, "weights": sram.place(weights),
        "output": sram.space(expected.size), "bias": 1, "per_channel": int(per_channel),
    }  # fmt: skip
    scales = np.broadcast_to(sx * sw / sy, filters).astype("<f4")
    registers = {
        "in_height": 9, "in_width": 8, "in_channels": depth, "out_height": rows,
        "out_width": columns, "out_channels": filters, "kernel_height": 3, "kernel_width": 3,
        "stride_height": stride, "stride_width": stride, "pad_top": 1, "pad_left": 1,
        "input_row_pitch": row, "input_pixel_pitch": pixel, "output_row_pitch": columns * filters,
        "output_pixel_pitch": filters, "input_zero": int(zx), "output_zero": int(zy),
        "bias_address": sram.place(folded.astype("<i4")), "scales_address": sram.place(scales),
        "scale": float(scales[0]),
    }  # fmt: skip
    after, _ = run(sram, "OP_CONV", fields, registers)
    got = image_at(after, fields["output"], expected.shape, columns * filters, filters)
    np.testing.assert_array_equal(got, expected)
