"""Reductions and running sums against ONNX Runtime."""

import numpy as np
import pytest

from ..cases import Case, Cases, normal

X = normal(2, 3, 5, 4)

CASES = Cases(
    [
        Case("reduce_max_axes", "ReduceMax", [X, np.array([1, -1])], {"keepdims": 0}),
        Case("reduce_min_opset13", "ReduceMin", [X], {"axes": [2]}, opset=13),
        Case("reduce_max_all", "ReduceMax", [X]),
        Case("reduce_max_nothing", "ReduceMax", [X], {"noop_with_empty_axes": 1}),
        Case("reduce_max_bool", "ReduceMax", [X > 0, np.array([1])], opset=20),
        *[
            Case(f"cumsum_{e}{r}", "CumSum", [X, np.array(-2)], {"exclusive": e, "reverse": r})
            for e in (0, 1)
            for r in (0, 1)
        ],
        Case("reduce_mean", "ReduceMean", [X, np.array([1, 3])]),
        Case("reduce_sum_opset11", "ReduceSum", [X], {"axes": [-1], "keepdims": 0}, opset=11),
        Case("reduce_l2", "ReduceL2", [X, np.array([2])]),
        Case("reduce_log_sum_exp", "ReduceLogSumExp", [X, np.array([2])]),
        Case("reduce_mean_int", "ReduceMean", [(X * 9).astype("int32"), np.array([1, 3])]),
        Case("reduce_mean_opset11", "ReduceMean", [X], {"axes": [-1], "keepdims": 0}, opset=11),
        Case("reduce_l2_opset13", "ReduceL2", [X], {"axes": [0, 1]}, opset=13),
        Case("reduce_log_sum", "ReduceLogSum", [np.abs(X), np.array([0])]),
        Case("reduce_log_sum_exp_dropped", "ReduceLogSumExp", [X, np.array([2])], {"keepdims": 0}),
        Case("arg_max", "ArgMax", [X], {"axis": 2, "keepdims": 0}),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)
