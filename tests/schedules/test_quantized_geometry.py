"""Positions and words of int8 convolutions, by hand."""

from __future__ import annotations

from tests.schedules.kernels import AVX512
from tests.schedules.quantized_layers import conv
from tvm_ext.schedules.dot_product import dot_product
from tvm_ext.schedules.quantized_geometry import QuantizedGeometry
from tvm_ext.target import resolve

VNNI, WIDENED = dot_product(resolve("llvm -mcpu=znver4")), dot_product(AVX512)


def test_pointwise_positions_are_one_row() -> None:
    g = QuantizedGeometry.of(conv(32, (5, 7), 8, 1), VNNI, 16, 16)
    assert g.flat
    assert (g.spatial, g.out, g.extent) == ((1, 35), (1, 35), 35)
    assert not QuantizedGeometry.of(conv(32, (5, 7), 8, 1, 2), VNNI, 16, 16).flat


def test_words_of_a_block() -> None:
    w = conv(24, (5, 7), 8, 3)
    g = QuantizedGeometry.of(w, VNNI, 16, 16)
    # 24 channels are 6 words, 4 to a block of 16; two divide both.
    assert (g.words, g.lane_words, g.step) == (6, 4, 2)
    plain = QuantizedGeometry.of(w, VNNI, 16)
    assert (plain.words, plain.lane_words, plain.step) == (6, 1, 2)
    widened = QuantizedGeometry.of(w, WIDENED, 16, 16)
    assert (widened.words, widened.lane_words, widened.step) == (12, 8, 4)


def test_rows_and_columns_that_outputs_read() -> None:
    g = QuantizedGeometry.of(conv(4, (11, 13), 8, 3, 2, 1, 2), VNNI, 16)
    assert g.padded
    assert (g.out, g.extent) == ((5, 6), 5)
    assert g.rows(2) == 2 + 5
    assert g.columns == 10 + 5
