"""Sum, Mean, Max and Min of several inputs: the values, and no stack in sight."""

import numpy as np
import pytest

from tvm_ext.frontend import load_model

from ..cases import Case, Cases, calls, normal

X, ROW, COLUMN = normal(2, 3, 5), normal(5, seed=1), normal(2, 1, 1, seed=2)
INTS = np.arange(-6, 6, dtype="int32").reshape(3, 4)

CASES = Cases(
    [
        *[
            Case(f"{op}_{count}", op, [X, ROW, COLUMN][:count], runtime=tuple(range(count)))
            for op in ("Sum", "Mean", "Max", "Min")
            for count in (1, 2, 3)
        ],
        Case("sum_with_constant", "Sum", [X, ROW]),
        Case("sum_first_is_smaller", "Sum", [ROW, X], runtime=(0, 1)),
        Case("sum_opset6", "Sum", [X, X[::-1].copy()], opset=6, runtime=(0, 1)),
        Case("max_int", "Max", [INTS, np.array(1, "int32")]),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("Sum_1", []),
        ("Sum_2", ["relax.add"]),
        ("Sum_3", ["relax.add", "relax.add"]),
        ("Mean_3", ["relax.add", "relax.add", "relax.divide"]),
        ("Max_3", ["relax.maximum", "relax.maximum"]),
        ("Min_2", ["relax.minimum"]),
    ],
)
def test_is_a_chain_of_operators_of_two(name, operators):
    assert calls(load_model(CASES.cases[name].model())) == operators
