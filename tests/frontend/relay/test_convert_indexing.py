"""Slices, gathers, scatters and tensors that only depend on shapes, against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases, constants, refuses
from tvm_ext.frontend.relay.convert import relay_to_relax

X, Y = normal(2, 3, 4), normal(2, 3, 4, seed=1)
INTS = np.array([[3, 1, 2], [0, 5, 4]], "int32")
PLACES = np.array([[[0, 2, 1, 0]], [[1, 1, 0, 2]]], "int32")
UPDATES = normal(2, 1, 4, seed=3)


def scattered(add: bool) -> np.ndarray:
    result = X.copy()
    for at in np.ndindex(PLACES.shape):
        to = (at[0], PLACES[at], at[2])
        result[to] = result[to] + UPDATES[at] if add else UPDATES[at]
    return result


FIRST_ROW_LAST = np.stack([X[:, :2][:, ::-1][0], X[1, :2]])
CASES = Cases(
    [
        Case(
            "slice",
            "strided_slice",
            [X],
            {"begin": [0, -1, 3], "end": [2, -9, 2**31 - 1], "strides": [1, -2, 1]},
            X[:, -1::-2, 3:],
        ),
        Case(
            "slice_axes",
            "strided_slice",
            [X],
            {"begin": [1], "end": [3], "strides": [1], "axes": [-1], "slice_mode": "end"},
            X[..., 1:3],
        ),
        Case(
            "slice_sizes",
            "strided_slice",
            [X],
            {"begin": [0, 1, 1], "end": [1, -1, 2], "slice_mode": "size"},
            X[:1, 1:, 1:3],
        ),
        Case("slice_like", "slice_like", [X, X[:, :2, :1]], {"axes": [2]}, X[..., :1]),
        Case("reverse", "reverse", [X], {"axis": 1}, X[:, ::-1]),
        Case(
            "reverse_sequence",
            "reverse_sequence",
            [X[:, :2], np.array([2, 1], "int32")],
            {"seq_axis": 1, "batch_axis": 0},
            FIRST_ROW_LAST,
        ),
        Case("repeat", "repeat", [X], {"repeats": 2, "axis": 1}, X.repeat(2, 1)),
        Case("tile", "tile", [X], {"reps": [2, 1, 3]}, np.tile(X, (2, 1, 3))),
        Case(
            "sequence_mask",
            "sequence_mask",
            [X, np.array([1, 0, 2], "int32")],
            {"axis": 0, "mask_value": -1.0},
            np.where(np.arange(2)[:, None, None] < np.array([1, 0, 2])[:, None], X, -1),
            runtime=(0, 1),
        ),
        Case(
            "take",
            "take",
            [X, np.array([[2, 0], [9, 1]])],
            {"axis": 1, "mode": "clip"},
            X[:, [[2, 0], [2, 1]]],
            runtime=(0, 1),
        ),
        Case(
            "take_wrap", "take", [X, np.array([5, -1])], {"axis": 2, "mode": "wrap"}, X[..., [1, 3]]
        ),
        Case("take_flat", "take", [X, np.array([5, 23])], {}, X.reshape(-1)[[5, 23]]),
        Case(
            "take_in_batches",
            "take",
            [normal(2, 3, 5, 4), np.array([[4, 0, 0], [1, -1, 9]])],
            {"axis": 2, "batch_dims": 1, "mode": "clip"},
            np.stack(
                [
                    normal(2, 3, 5, 4)[i][:, places]
                    for i, places in enumerate(([4, 0, 0], [1, 0, 4]))
                ]
            ),
            runtime=(0, 1),
        ),
        Case(
            "take_in_batches_wrap",
            "take",
            [normal(2, 3, 5, 4), np.array([2, -1], "int32")],
            {"axis": 1, "batch_dims": 1, "mode": "wrap"},
            normal(2, 3, 5, 4)[[0, 1], [2, 2]],
        ),
        Case("take_one", "take", [X, np.array(1)], {"axis": 1}, X[:, 1]),
        Case(
            "gather",
            "gather",
            [X, PLACES],
            {"axis": 1},
            np.take_along_axis(X, PLACES, 1),
            runtime=(0, 1),
        ),
        Case(
            "gather_nd",
            "gather_nd",
            [X, np.array([[0, 1, 1], [2, 0, 1]])],
            {},
            X[[0, 1, 1], [2, 0, 1]],
        ),
        Case(
            "gather_nd_at_run_time",
            "gather_nd",
            [X, np.array([[0, 1, 1], [2, 0, 1]], "int32")],
            {},
            X[[0, 1, 1], [2, 0, 1]],
            runtime=(0, 1),
        ),
        Case(
            "gather_nd_batch",
            "gather_nd",
            [X, np.array([[2, 0]])],
            {"batch_dims": 1},
            X[[0, 1], [2, 0]],
        ),
        Case(
            "adv_index",
            "adv_index",
            [(X, np.array([[0], [1]]), np.array([2, 0]))],
            {},
            X[np.array([[0], [1]]), np.array([2, 0])],
        ),
        Case("scatter", "scatter_elements", [X, PLACES, UPDATES], {"axis": 1}, scattered(False)),
        Case("scatter_add", "scatter_add", [X, PLACES, UPDATES], {"axis": 1}, scattered(True)),
        Case(
            "scatter_nd",
            "scatter_nd",
            [X, np.array([[1, 0], [2, 0]]), Y[:, 0]],
            {"mode": "update"},
            np.stack(
                [np.stack([Y[1, 0], X[0, 1], X[0, 2]]), np.stack([X[1, 0], X[1, 1], Y[0, 0]])]
            ),
        ),
        Case("zeros", "add", [X, np.zeros(1, "float32")], {}, X),
        Case("zeros_like", "zeros_like", [X], {}, np.zeros_like(X)),
        Case("full_like", "full_like", [X, np.array(2.5, "float32")], {}, np.full_like(X, 2.5)),
        Case(
            "full_at_run_time",
            "full",
            [np.array(2.5, "float32")],
            {"shape": [2, 3], "dtype": ""},
            np.full((2, 3), 2.5, "float32"),
        ),
        Case(
            "one_hot",
            "one_hot",
            [INTS, np.array(2.0, "float32"), np.array(-1.0, "float32")],
            {"depth": 4, "axis": 1, "dtype": "float32"},
            np.where(INTS[:, None] == np.arange(4)[:, None], 2, -1).astype("float32"),
        ),
        Case(
            "meshgrid",
            "meshgrid",
            [(X[0, 0], Y[0, :, 0])],
            {"indexing": "ij"},
            np.meshgrid(X[0, 0], Y[0, :, 0], indexing="ij"),
        ),
        Case(
            "meshgrid_xy",
            "meshgrid",
            [(X[0, 0], Y[0, :, 0])],
            {"indexing": "xy"},
            np.meshgrid(X[0, 0], Y[0, :, 0]),
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


@pytest.mark.parametrize(
    ("op", "args", "attrs", "expected"),
    [
        ("shape_of", [X], {"dtype": "int64"}, np.array([2, 3, 4])),
        ("ndarray_size", [X], {}, np.array(24, "int32")),
        ("zeros", [], {"shape": [2, 3], "dtype": "int8"}, np.zeros((2, 3), "int8")),
        ("dyn.ones", [np.array([2])], {"dtype": "float32"}, np.ones(2, "float32")),
        ("full", [np.array(7, "int32")], {"shape": [2], "dtype": ""}, np.array([7, 7], "int32")),
        (
            "arange",
            [np.array(5, "int32"), np.array(-2, "int32"), np.array(-3, "int32")],
            {"dtype": "int32"},
            np.array([5, 2, -1], "int32"),
        ),
        ("take", [np.arange(5) ** 2, np.array([3, 1])], {"axis": 0}, np.array([9, 1])),
        ("concatenate", [(np.arange(2), np.arange(3))], {}, np.array([0, 1, 0, 1, 2])),
        (
            "strided_slice",
            [np.arange(6)],
            {"begin": [4], "end": [0], "strides": [-2]},
            np.array([4, 2]),
        ),
        ("prod", [np.array([2, 3, 4])], {"axis": None}, np.array(24)),
        ("cast", [np.array([1.7], "float32")], {"dtype": "int32"}, np.array([1], "int32")),
    ],
)  # fmt: skip
def test_values_that_are_known(op, args, attrs, expected) -> None:
    runtime = (0,) if op in ("shape_of", "ndarray_size") else ()
    (value,) = constants(relay_to_relax(Case("known", op, args, attrs, None, runtime).module()))
    np.testing.assert_array_equal(value, expected)
    assert value.dtype == expected.dtype


@pytest.mark.parametrize(
    ("op", "args", "attrs", "message"),
    [
        ("strided_slice", [X], {"begin": [0], "end": [1], "slice_mode": "x"}, "end, size"),
        ("take", [X, np.zeros(3, "int32")], {"batch_dims": 1, "axis": 1}, "must begin alike"),
        ("scatter_nd", [X, INTS, X], {"mode": "x"}, "update, add"),
        ("arange", [X], {}, "'start' must be constant"),
    ],
)
def test_refusals(op, args, attrs, message) -> None:
    refuses(op, args, attrs, message)


def test_large_tensors_of_one_number_stay_operators() -> None:
    module = relay_to_relax(
        Case("large", "zeros", [], {"shape": [1024, 1024], "dtype": "float32"}, None, ()).module()
    )
    assert sum(math.prod(value.shape) for value in constants(module)) <= 1
