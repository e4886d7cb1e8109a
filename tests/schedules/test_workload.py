"""Shapes, work and traffic of the layers that aren't convolutions, worked by hand."""

from __future__ import annotations

import numpy as np

from tvm_ext.schedules import workload as wl
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step

BIAS_RELU = Epilogue(
    (Step("add", (("value", 0), ("operand", 0))), Step("relu", (("value", 1),))),
    (Operand((10,), "float32"),),
)


def test_pool() -> None:
    w = wl.PoolWorkload(
        "max", (1, 8, 6, 6), (3, 2), (3, 2), (0, 0), (0, 0), (1, 1), (1, 8, 2, 3),
        epilogue=BIAS_RELU,
    )  # fmt: skip
    assert w.flops == 48 * (6 + 2)
    assert w.bytes == 4 * (8 * 36 + 48) + 40


def test_elementwise() -> None:
    w = wl.ElementwiseWorkload((5, 10), "float32", BIAS_RELU)
    assert (w.out_shape, w.flops, w.bytes) == ((5, 10), 2 * 50, 4 * 50 + 40)


def test_concat_and_transpose_only_move() -> None:
    shapes = ((2, 3, 5), (2, 1, 5), (2, 4, 5))
    concat = wl.ConcatWorkload(shapes, 1, "float32")
    assert concat.out_shape == np.concatenate([np.zeros(s) for s in shapes], 1).shape
    assert (concat.flops, concat.bytes) == (0, 2 * 4 * 80)
    transpose = wl.TransposeWorkload((2, 3, 5), (2, 0, 1))
    assert transpose.out_shape == np.zeros((2, 3, 5)).transpose(2, 0, 1).shape
    assert (transpose.flops, transpose.bytes) == (0, 2 * 4 * 30)


def test_normalize_reads_and_writes_once() -> None:
    w = wl.NormalizeWorkload("layer_norm", 6, 10, (2, 3, 10), epilogue=BIAS_RELU)
    assert w.bytes == 2 * 4 * 60 + 40
    softmax = wl.NormalizeWorkload("softmax", 6, 10, (6, 10))
    assert softmax.flops > w.flops


def test_views_cost_nothing() -> None:
    w = wl.ViewWorkload((2, 6), (3, 4), "int64")
    assert (w.flops, w.bytes) == (0, 0)


def test_generic_layers_are_known_by_their_bytes() -> None:
    w = wl.GenericWorkload(1, ("sort",), ((4, 5), (4,)), 80, 96)
    assert (w.flops, w.bytes) == (24, 176)


def test_operands_of_one_element_count_too() -> None:
    epilogue = Epilogue((), (Operand((), "float32"), Operand((1, 7, 1), "float32")))
    assert wl.operand_bytes(epilogue) == 4 * (1 + 7)
