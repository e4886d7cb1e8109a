"""Tensors read through moves, as operands, against NumPy's own moves."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from tests.schedules.strided import seen
from tvm_ext.passes.fusion.reading import read_through
from tvm_ext.schedules.epilogue import Operand

# The shape of a tensor, the moves behind it, what NumPy makes of it, the shape that reads it.
CASES = {
    "nothing": ((2, 3), (), lambda x: x, (2, 3)),
    "a bias": ((3,), (("broadcast", (2, 3)),), lambda x: x, (2, 3)),
    "one value": ((), (("broadcast", (2, 3)),), lambda x: x, (2, 3)),
    "leading ones": ((2, 3), (("reshape", (1, 2, 3)),), lambda x: x[None], (1, 2, 3)),
    "transposed": ((2, 3), (("permute", (1, 0)),), lambda x: x.T, (3, 2)),
    "ones that change places": (
        (1, 3, 1), (("permute", (2, 1, 0)),), lambda x: x.transpose(2, 1, 0), (1, 3, 1)
    ),
    "sliced": ((4, 6), (("slice", 1, 1, 3, 2),), lambda x: x[:, 1:7:2], (4, 3)),
    "backwards": ((6,), (("slice", 0, 5, 6, -1),), lambda x: x[::-1], (6,)),
    "the first rows": ((4, 3), (("slice", 0, 0, 2, 1),), lambda x: x[:2], (2, 3)),
    "one row, repeated": (
        (4, 3), (("slice", 0, 2, 1, 1), ("broadcast", (5, 3))), lambda x: x[2:3], (5, 3)
    ),
    "broadcast, then transposed": (
        (3,), (("broadcast", (2, 3)), ("permute", (1, 0))),
        lambda x: np.broadcast_to(x, (2, 3)).T, (3, 2),
    ),
    "split into heads": (
        (4, 6), (("reshape", (4, 2, 3)), ("permute", (1, 0, 2))),
        lambda x: x.reshape(4, 2, 3).transpose(1, 0, 2), (2, 4, 3),
    ),
    "enlarged": (
        (1, 2, 3, 2), (("repeat", (1, 1, 2, 3)),), lambda x: x.repeat(2, 2).repeat(3, 3),
        (1, 2, 6, 6),
    ),
}  # fmt: skip


def _seen(operand: Operand, x: np.ndarray, at: tuple[int, ...]) -> np.ndarray:
    """What every position of shape `at` reads."""
    if operand.view is not None:
        return seen(x, operand.view.broadcast(at))
    own, read = x.reshape(operand.shape), np.empty(at, x.dtype)
    for position in np.ndindex(at):
        read[position] = own[tuple(operand.place(position[len(at) - own.ndim :]))]
    return read


@pytest.mark.parametrize("name", CASES)
def test_positions_read_what_numpy_moves_there(name: str) -> None:
    own, moves, numpy, at = CASES[name]
    x = np.arange(prod(own), dtype="float32").reshape(own)
    operand = read_through(own, moves, at, "float32")
    assert operand is not None
    np.testing.assert_array_equal(_seen(operand, x, at), np.broadcast_to(numpy(x), at))


@pytest.mark.parametrize("name", ["nothing", "a bias", "leading ones", "ones that change places"])
def test_whole_tensors_in_order_need_no_view(name: str) -> None:
    own, moves, _, at = CASES[name]
    operand = read_through(own, moves, at, "float32")
    assert operand is not None
    assert operand.view is None


def test_a_view_knows_how_large_its_tensor_is() -> None:
    operand = read_through((4, 6), (("slice", 0, 1, 2, 1),), (2, 6), "float32")
    assert operand is not None
    assert operand.size == 24


def test_moves_without_strides_are_refused() -> None:
    assert read_through((2, 3), (("permute", (1, 0)), ("reshape", (6,))), (6,), "float32") is None
    enlarged = (("repeat", (1, 1, 2, 2)), ("permute", (0, 1, 3, 2)))
    assert read_through((1, 1, 2, 3), enlarged, (1, 1, 6, 4), "float32") is None
