"""Positions and parts of tensors against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases, refuses

X = normal(2, 3, 4)
ROWS = np.sort(normal(2, 5), axis=1)
VALUES = np.concatenate([ROWS[:, [1, 4]], normal(2, 1, seed=1)], 1)


def searched(side: str) -> np.ndarray:
    rows = [np.searchsorted(r, v, side) for r, v in zip(ROWS, VALUES, strict=True)]
    return np.stack(rows).astype("int32")


def with_slice(a: np.ndarray, at: tuple[slice, ...], values: np.ndarray) -> np.ndarray:
    result = a.copy()
    result[at] = values
    return result


PART = normal(1, 2, 4, seed=2)
# By hand: the diagonals 1, 0 and -1 of 3 x 4, the highest first; that of -1 has two elements.
BANDS = np.array([[1, 2, 3], [4, 5, 6], [0, 7, 8]], "float32")
BANDED = {
    "right": [[4, 1, 9, 9], [7, 5, 2, 9], [9, 8, 6, 3]],
    "left": [[4, 1, 9, 9], [0, 5, 2, 9], [9, 7, 6, 3]],
}
NINES = np.full((1, 3, 4), 9, "float32")

CASES = Cases(
    [
        Case(
            "unravel_index",
            "unravel_index",
            [np.array([0, 5, 23, 14], "int32"), np.array([2, 3, 4], "int32")],
            {},
            np.stack(np.unravel_index([0, 5, 23, 14], (2, 3, 4))).astype("int32"),
        ),
        Case(
            "invert_permutation",
            "invert_permutation",
            [np.array([3, 0, 2, 1], "int32")],
            {},
            np.array([1, 3, 2, 0], "int32"),
        ),
        *(
            Case(
                f"searchsorted_{side}",
                "searchsorted",
                [ROWS, VALUES],
                {"right": side == "right", "dtype": "int32"},
                searched(side),
                runtime=(0, 1),
            )
            for side in ("left", "right")
        ),
        Case(
            "searchsorted_one_row",
            "searchsorted",
            [ROWS[0], VALUES],
            {"dtype": "int64"},
            np.searchsorted(ROWS[0], VALUES),
            runtime=(0, 1),
        ),
        Case(
            "strided_set",
            "strided_set",
            [X, PART, *(np.array(n, "int32") for n in ([1, 0, 0], [2, 3, 4], [1, 2, 1]))],
            {},
            with_slice(X, (slice(1, 2), slice(0, 3, 2)), PART),
            runtime=(0, 1),
        ),
        Case(
            "matrix_set_diag",
            "matrix_set_diag",
            [X, normal(2, 3, seed=3)],
            {"k1": 1, "k2": 1},
            np.where(np.eye(3, 4, 1, dtype=bool), normal(2, 3, seed=3)[:, :, None], X),
            runtime=(0, 1),
        ),
        *(
            Case(
                f"matrix_set_diags_{side}",
                "matrix_set_diag",
                [NINES, BANDS[None]],
                {"k1": -1, "k2": 1, "sub_diag_right_align": side == "right"},
                np.array([rows], "float32"),
                runtime=(0, 1),
            )
            for side, rows in BANDED.items()
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


def test_refusals() -> None:
    refuses("searchsorted", [ROWS, VALUES[0]], {}, "it must have one dimension or as many")
    bounds = [np.array([0]), np.array([1]), np.array([1])]
    refuses("strided_set", [X, X, *bounds], {}, r"the values have the shape \(2, 3, 4\), the slice")
