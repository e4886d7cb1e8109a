"""Reductions, sorting and running sums, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases, refuses

X = normal(2, 3, 4)
INTS = np.array([[3, 1, 2], [0, 5, 4]], "int32")
TRUTH = X > -0.5


CASES = Cases(
    [
        Case("sum", "sum", [X], {"axis": [0, -1], "keepdims": True}, X.sum((0, 2), keepdims=True)),
        Case("sum_all", "sum", [X], {"axis": None}, X.sum()),
        Case("sum_exclude", "sum", [X], {"axis": 1, "exclude": True}, X.sum((0, 2))),
        Case("mean", "mean", [X], {"axis": [1]}, X.mean(1)),
        Case("mean_ints", "mean", [-INTS * 2], {"axis": [1]}, np.array([-4, -6], "int32")),
        Case("max", "max", [X], {"axis": [2]}, X.max(2)),
        Case("min", "min", [INTS], {"axis": []}, INTS.min()),
        Case("prod", "prod", [X], {"axis": [0]}, X.prod(0)),
        Case("all", "all", [TRUTH], {"axis": [1]}, TRUTH.all(1)),
        Case(
            "any", "any", [~TRUTH], {"axis": [2], "keepdims": True}, (~TRUTH).any(2, keepdims=True)
        ),
        Case("argmax", "argmax", [X], {"axis": [1]}, X.argmax(1).astype("int32")),
        Case("argmin_all", "argmin", [X], {"axis": None}, np.asarray(X.argmin(), "int32")),
        Case(
            "argmax_two_axes",
            "argmax",
            [X],
            {"axis": [0, 2], "keepdims": True},
            X.transpose(1, 0, 2).reshape(3, 8).argmax(1).astype("int32").reshape(1, 3, 1),
        ),
        Case(
            "argmax_last",
            "argmax",
            [np.array([[1, 3, 3], [2, 2, 0]], "float32")],
            {"axis": [1], "select_last_index": True},
            np.array([2, 1], "int32"),
        ),
        Case(
            "variance",
            "variance",
            [X, X.mean(1, keepdims=True)],
            {"axis": [1], "unbiased": True},
            X.var(1, ddof=1),
            runtime=(0, 1),
        ),
        Case("sort", "sort", [X], {"axis": 1, "is_ascend": False}, -np.sort(-X, 1)),
        Case(
            "argsort",
            "argsort",
            [X],
            {"axis": -1, "is_ascend": True, "dtype": "float32"},
            X.argsort(-1).astype("float32"),
        ),
        Case(
            "topk",
            "topk",
            [X],
            {"k": 2, "axis": -1, "ret_type": "both", "dtype": "int32"},
            [-np.sort(-X, -1)[..., :2], (-X).argsort(-1)[..., :2].astype("int32")],
        ),
        Case(
            "topk_values",
            "topk",
            [X],
            {"k": 1, "axis": 1, "ret_type": "values", "is_ascend": True},
            X.min(1, keepdims=True),
        ),
        Case("cumsum", "cumsum", [X], {"axis": 1}, X.cumsum(1)),
        Case(
            "cumsum_exclusive",
            "cumsum",
            [INTS],
            {"axis": None, "exclusive": True, "dtype": "int64"},
            INTS.astype("int64").cumsum() - INTS.reshape(-1),
        ),
        Case("trilu", "trilu", [X, np.array(1)], {"upper": False}, np.tril(X, 1)),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


@pytest.mark.parametrize(
    ("op", "args", "attrs", "message"),
    [
        ("topk", [X], {"k": 1, "ret_type": "x"}, "both, values, indices"),
    ],
)
def test_refusals(op, args, attrs, message) -> None:
    refuses(op, args, attrs, message)
