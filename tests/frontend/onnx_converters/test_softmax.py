"""Softmax and LogSoftmax: both meanings of ``axis``, and a reshape only where one is needed."""

import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..cases import Case, Cases, calls, normal

X = normal(2, 3, 5, 4) * 3

CASES = Cases(
    [
        *[
            Case(f"{op}_{opset}_{axis}", op, [X], {"axis": axis}, opset=opset)
            for op in ("Softmax", "LogSoftmax")
            for opset in (11, 13)
            for axis in (0, 1, 3, -1)
        ],
        *[Case(f"default_{opset}", "Softmax", [X], opset=opset) for opset in (1, 11, 13)],
        Case("matrix_11", "Softmax", [normal(3, 7)], opset=11),
        Case("image_of_one_pixel_11", "Softmax", [normal(2, 7, 1, 1)], opset=11),
        Case("all_ones_11", "Softmax", [normal(2, 1, 1)], opset=11),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("Softmax_13_1", ["relax.nn.softmax"]),
        ("Softmax_11_3", ["relax.nn.softmax"]),
        ("Softmax_11_1", ["relax.reshape", "relax.nn.softmax", "relax.reshape"]),
        ("LogSoftmax_11_-1", ["relax.nn.log_softmax"]),
        ("matrix_11", ["relax.nn.softmax"]),
        ("image_of_one_pixel_11", ["relax.nn.softmax"]),
    ],
)
def test_is_the_relax_operator(name, operators):
    assert calls(load_model(CASES.cases[name].model())) == operators


@pytest.mark.parametrize(("opset", "axis"), [(13, 4), (13, -5), (11, 5)])
def test_an_axis_out_of_range_is_refused(opset, axis):
    case = Case("range", "Softmax", [X], {"axis": axis}, opset=opset)
    with pytest.raises(ModelError, match=rf"'node' \(Softmax\): axis is {axis}; .* 4 dimensions"):
        load_model(case.model())
