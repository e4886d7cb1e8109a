"""Operators that move elements, as views, against NumPy."""

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

from tests.passes.relax_models import module
from tests.schedules.strided import seen
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.moves import follow, inverse, moves_of, repeated, repeats
from tvm_ext.schedules.strided_view import StridedView

DATA = np.arange(2 * 3 * 4).reshape(2, 3, 4)


def _moves(make):
    mod = module({"x": DATA.shape}, lambda emit, x: make(x))
    return moves_of(df.bindings(mod["main"])[0][1])


CASES = {
    "reshape": (lambda x: op.reshape(x, (6, 4)), lambda x: x.reshape(6, 4)),
    "flatten": (op.flatten, lambda x: x.reshape(-1)),
    "expand": (lambda x: op.expand_dims(x, 1), lambda x: x[:, None]),
    "permute": (lambda x: op.permute_dims(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "reverse axes": (op.permute_dims, lambda x: x.T),
    "broadcast": (
        lambda x: op.broadcast_to(x, (5, 2, 3, 4)),
        lambda x: np.broadcast_to(x, (5, 2, 3, 4)),
    ),
    "flip": (lambda x: op.flip(x, 1), lambda x: x[:, ::-1]),
    "slice": (lambda x: op.strided_slice(x, [2], [1], [3]), lambda x: x[:, :, 1:3]),
    "two slices": (
        lambda x: op.strided_slice(x, [0, -1], [1, -1], [2, -5], [1, -2]),
        lambda x: x[1:2, :, -1:-5:-2],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_move_reads_what_numpy_does(name):
    make, expected = CASES[name]
    view = follow(StridedView.contiguous(DATA.shape), _moves(make))
    np.testing.assert_array_equal(seen(DATA, view), expected(DATA))


@pytest.mark.parametrize("make", [op.nn.relu, lambda x: op.concat([x, x], 1), op.sum])
def test_others_are_no_moves(make):
    assert _moves(make) is None


def test_a_slice_from_a_computed_place_is_no_move():
    x = relax.Var("x", relax.TensorType((4, 4), "float32"))
    begin, end, step = (relax.Var(n, relax.TensorType((2,), "int64")) for n in "bes")
    call = op.dynamic_strided_slice(x, begin, end, step)
    assert moves_of(call) is None


def test_moves_and_their_inverse_lead_back():
    moves = (("permute", (1, 0, 2)), ("reshape", (6, 4)), ("permute", (1, 0)))
    back = inverse(moves, (3, 2, 4))
    whole = StridedView.contiguous((3, 2, 4))
    # The reshape alone has no strides; with its inverse it needs none.
    assert follow(whole, moves[:2]) is None
    assert follow(whole, (*moves, *back)) == whole


def _enlarged(shape, size, method="nearest_neighbor", mode="asymmetric", rounding="floor"):
    call = op.image.resize2d(
        relax.Var("x", relax.TensorType(shape, "float32")), size, method=method,
        coordinate_transformation_mode=mode, rounding_method=rounding,
    )  # fmt: skip
    return relax.BlockBuilder().normalize(call)


def test_nearest_enlargement_by_whole_factors_repeats():
    for mode, rounding in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor")):
        call = _enlarged((1, 2, 3, 4), (6, 12), mode=mode, rounding=rounding)
        assert moves_of(call) == (("repeat", (1, 1, 2, 3)),)
        assert repeats(call)


@pytest.mark.parametrize(
    "call",
    [
        _enlarged((1, 2, 3, 4), (7, 8)),
        _enlarged((1, 2, 3, 4), (6, 8), method="linear"),
        _enlarged((1, 2, 3, 4), (6, 8), rounding="ceil"),
        _enlarged((1, 2, 4, 4), (2, 2)),
    ],
    ids=["fraction", "linear", "ceil", "smaller"],
)
def test_other_resizing_is_no_move(call):
    assert moves_of(call) is None
    assert not repeats(call)


def test_repetitions_multiply_and_broadcast_dimensions_have_none():
    moves = (("repeat", (1, 1, 2, 3)), ("broadcast", (5, 4, 6, 6)), ("repeat", (1, 1, 2, 1)))
    shape, factors = repeated((4, 3, 2), (("broadcast", (1, 4, 3, 2)), *moves))
    assert (shape, factors) == ((1, 4, 3, 2), (1, 1, 4, 3))
    assert repeated((1, 4, 1, 2), moves[:1]) == ((1, 4, 1, 2), (1, 1, 1, 3))
    assert repeated((1, 4, 3, 2), (*moves[:1], ("slice", 2, 0, 2, 1))) is None


def test_a_repetition_has_no_inverse():
    assert inverse((("repeat", (1, 1, 2, 2)),), (1, 2, 3, 4)) is None


def test_a_slice_has_no_inverse():
    assert inverse((("slice", 0, 0, 1, 1),), (2, 3)) is None
