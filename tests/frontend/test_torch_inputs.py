"""Shapes and values for the inputs of exported programs."""

from functools import cache

import numpy as np
import pytest

from tvm_ext.errors import InputShapeError, ModelError
from tvm_ext.frontend import load_model

from .torch_cases import export, normal, torch

Dim = torch.export.Dim


class Joined(torch.nn.Module):
    """Pairs of rows side by side; as many rows in `y` as in `x`."""

    def forward(self, x, y):
        return x.reshape(x.shape[0] // 2, -1) + y.reshape(y.shape[0] // 2, -1)


class Plain(torch.nn.Module):
    def forward(self, x):
        return x * 2


def shapes(module):
    main = module["main"]
    return [tuple(int(d) for d in ty.shape) for ty in (*(p.ty for p in main.params), main.ret_ty)]


@cache
def joined():
    rows = 2 * Dim("pairs", max=10)
    dims = {"x": {0: rows}, "y": {0: rows}}
    return export(Joined(), normal(4, 3), normal(4, 3), dynamic_shapes=dims)


@cache
def plain(**limits):
    return export(Plain(), normal(4, 3), dynamic_shapes={"x": {0: Dim("rows", **limits)}})


def test_one_dynamic_dimension_settles_all_that_follow_from_it():
    # The result's shape is a fraction of x's, and y isn't given.
    assert shapes(load_model(joined(), {"x": (6, 3)})) == [(6, 3), (6, 3), (3, 6)]
    assert shapes(load_model(joined(), {"x": (8, 3), "y": (8, 3)})) == [(8, 3), (8, 3), (4, 6)]


def test_a_batch_of_one():
    assert shapes(load_model(plain(), {"x": (1, 3)})) == [(1, 3), (1, 3)]


@pytest.mark.parametrize(
    ("program", "given", "message"),
    [
        (plain, None, r"input 'x', dimension 0 is dynamic .*input_shapes={'x': \(1, 3\)}"),
        (plain, {"z": (4, 3)}, r"unknown inputs \['z'\]; the model's inputs are \['x'\]"),
        (plain, {"x": (4,)}, "input 'x' has 2 dimensions, input_shapes gives 1"),
        (plain, {"x": (0, 3)}, "input 'x', dimension 0: 0 must be at least 1"),
        (plain, {"x": (4, 5)}, "input 'x', dimension 1: the program fixes it at 3, not 5"),
        (joined, {"x": (5, 3)}, r"input 'x', dimension 0: 2\*\w+ can't be 5"),
        (joined, {"x": (6, 3), "y": (8, 3)}, r"input 'y', dimension 0: .* fixes it at .* not 8"),
        (joined, {"x": (30, 3)}, r"dimension \w+ is 15; .* exported for \d to 10"),
    ],
)
def test_every_way_to_get_a_shape_wrong(program, given, message):
    with pytest.raises(InputShapeError, match=message):
        load_model(program(), given)


def test_a_range_has_a_lower_end_too():
    with pytest.raises(InputShapeError, match=r"is 3; .* exported for 4 to 9"):
        load_model(plain(min=4, max=9), {"x": (3, 3)})


def test_a_bound_value_gives_its_shape():
    assert shapes(load_model(joined(), params={"x": np.ones((6, 3), "float32")})) == [
        (6, 3),
        (3, 6),
    ]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"z": np.ones(3)}, r"unknown names \['z'\]; the program's are \['x'\]"),
        ({"x": np.ones((4, 3))}, r"gives 'x' as torch\.float64 .* wants torch\.float32"),
    ],
)
def test_values_that_do_not_fit(params, message):
    with pytest.raises(ModelError, match=message):
        load_model(plain(), params=params)
