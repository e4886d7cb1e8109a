"""Gathers, scatters and other movers of data against ONNX Runtime."""

import numpy as np
import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..cases import Case, Cases, calls, normal

X = normal(3, 5, 4)
ROWS = np.array([[4, -1], [0, -5]])
ON_OFF = np.array([-1.0, 2.5], "float32")
UPDATES = normal(2, 5, 4, seed=1)

CASES = Cases(
    [
        Case("gather_scalar", "Gather", [X, np.array(-2)], {"axis": 1}),
        Case("gather_matrix", "Gather", [X, ROWS], {"axis": 1}),
        Case("gather_negative_axis", "Gather", [X, np.array([3, 0])], {"axis": -1}),
        Case("gather_at_run_time", "Gather", [X, ROWS], {"axis": 1}, runtime=(0, 1)),
        Case("gather_elements", "GatherElements", [X, ROWS[None] % 3], {"axis": 0}),
        Case("gather_nd", "GatherND", [X, np.array([[0, 4], [2, 1]])]),
        Case("scatter_nd", "ScatterND", [X, np.array([[0], [2]]), UPDATES]),
        Case("scatter_elements", "ScatterElements", [X, np.array([[[1, 0]]]), normal(1, 1, 2)]),
        Case("one_hot", "OneHot", [ROWS, np.array(5), ON_OFF]),
        Case("one_hot_axis0", "OneHot", [ROWS, np.array([6]), ON_OFF], {"axis": 0}),
        Case("one_hot_outside", "OneHot", [np.array([7, -9, 1]), np.array(3), ON_OFF]),
        Case("eye_like", "EyeLike", [normal(3, 4)], {"k": 1}),
        Case("eye_like_int", "EyeLike", [normal(4, 3)], {"dtype": 6}),
        Case("split_sizes", "Split", [X, np.array([1, 3, 1])], {"axis": 1}, outputs=3),
        Case("split_equal", "Split", [X], {"axis": 2, "num_outputs": 2}, outputs=2),
        Case("split_uneven", "Split", [X], {"axis": 1, "num_outputs": 2}, outputs=2),
        Case("split_opset11", "Split", [X], {"axis": 1, "split": [2, 3]}, opset=11, outputs=2),
        Case(
            "slice",
            "Slice",
            [X, np.array([-1, 1]), np.array([-9, 5]), np.array([0, 1]), np.array([-2, 3])],
        ),
        Case(
            "slice_whole_backwards",
            "Slice",
            [X, np.array([99]), np.array([-99]), np.array([1]), np.array([-1])],
        ),
        Case("slice_defaults", "Slice", [X, np.array([1, 0]), np.array([2**62, 3])]),
        Case("slice_opset9", "Slice", [X], {"starts": [1], "ends": [99], "axes": [1]}, opset=9),
        Case("expand", "Expand", [normal(3, 1, 4), np.array([2, 1, 5, 1])]),
        Case("tile", "Tile", [X, np.array([2, 1, 3])]),
        Case("trilu", "Trilu", [X, np.array(-1)], {"upper": 0}),
        Case("top_k", "TopK", [X, np.array([3])], {"axis": 1}, outputs=2),
        Case("top_k_smallest", "TopK", [X, np.array([2])], {"largest": 0}, outputs=2),
        Case("concat", "Concat", [X, normal(3, 2, 4)], {"axis": -2}),
        Case("reshape", "Reshape", [X, np.array([0, -1, 2])]),
        Case("flatten", "Flatten", [X], {"axis": 2}),
        Case("squeeze", "Squeeze", [normal(1, 3, 1, 2), np.array([0, -2])]),
        Case("unsqueeze_opset11", "Unsqueeze", [X], {"axes": [0, 4]}, opset=11),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


def test_one_known_index_is_a_slice():
    module = load_model(CASES.cases["gather_scalar"].model())
    assert calls(module) == ["relax.strided_slice", "relax.squeeze"]


def test_index_out_of_range_is_refused():
    case = Case("outside", "Gather", [X, np.array([0, 5])], {"axis": 1})
    with pytest.raises(ModelError, match=r"indices \[0, 5\] exceed axis 1, which has 5 elements"):
        load_model(case.model())
