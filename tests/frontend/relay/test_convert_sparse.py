"""Sparse matrices against scipy's and numpy's products."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases, refuses

# By hand: rows of 4 x 6, compressed; the second one is empty.
DENSE = np.array(
    [[0, 2, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0], [3, 0, 0, -1, 0, 0], [0, 0, 4, 0, 0, 0]], "float32"
)
CSR = [
    np.array([2, 1, 3, -1, 4], "float32"),
    np.array([1, 5, 0, 3, 2], "int32"),
    np.array([0, 2, 2, 4, 5], "int32"),
]
# The same as blocks of 2 x 3; the first row has two of them.
BSR = [
    np.array([DENSE[:2, :3], DENSE[:2, 3:], DENSE[2:, :3], DENSE[2:, 3:]]),
    np.array([0, 1, 0, 1], "int32"),
    np.array([0, 2, 4], "int32"),
]
X = normal(5, 6)
IMAGE = normal(1, 3, 4, 6)
SQUARE = np.array([[0, 1, 0], [2, 0, 3], [0, 0, 4]], "float32")
PLACES = np.array([[0, 1], [2, 3], [1, 0]], "int32")


def placed() -> np.ndarray:
    out = np.full((3, 4), 7, "float32")
    out[tuple(PLACES.T)] = [1, 2, 3]
    return out


VALUES, SEVEN = np.array([1, 2, 3], "float32"), np.array(7, "float32")
CASES = Cases(
    [
        Case("csr", "nn.sparse_dense", [X, *CSR], {"sparse_lhs": False}, X @ DENSE.T),
        Case("bsr", "nn.sparse_dense", [X, *BSR], {}, X @ DENSE.T),
        Case("csr_left", "nn.sparse_dense", [X, *CSR], {"sparse_lhs": True}, DENSE @ X.T),
        Case("add", "nn.sparse_add", [X[:4], *CSR], {}, X[:4] + DENSE),
        Case("conv_nhwc", "nn.sparse_conv2d", [IMAGE, *BSR], {"layout": "NHWC"}, IMAGE @ DENSE.T),
        Case(
            "conv_nchw",
            "nn.sparse_conv2d",
            [IMAGE.transpose(0, 3, 1, 2), *CSR],
            {"layout": "NCHW"},
            (IMAGE @ DENSE.T).transpose(0, 3, 1, 2),
        ),
        Case(
            "to_dense",
            "sparse_to_dense",
            [PLACES, VALUES, SEVEN],
            {"output_shape": [3, 4]},
            placed(),
            runtime=(0, 1),
        ),
        Case(
            "to_dense_dynamic",
            "dyn.sparse_to_dense",
            [PLACES, VALUES, SEVEN, np.array([3, 4])],
            {},
            placed(),
        ),
        Case(
            "to_dense_one",
            "sparse_to_dense",
            [np.array(2, "int32"), np.array(5, "float32"), np.array(0, "float32")],
            {"output_shape": [4]},
            np.array([0, 0, 5, 0], "float32"),
        ),
        # The flat places of 3 x 4 are 1, 11 and 4.
        Case(
            "reshape",
            "sparse_reshape",
            [PLACES, np.array([3, 4], "int32"), np.array([2, -1, 2], "int32")],
            {},
            [
                np.array([[0, 0, 1], [1, 2, 1], [0, 2, 0]], "int32"),
                np.array([2, 3, 2], "int32"),
            ],
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


def test_transpose() -> None:
    """By hand: the columns of `SQUARE` are (2), (1) and (3, 4)."""
    parts = [np.array([1, 2, 3, 4], "float32"), np.array([1, 0, 2, 2]), np.array([0, 1, 3, 4])]
    x = normal(2, 3)
    transposed = Cases(
        [
            Case(
                "transpose",
                "nn.sparse_transpose",
                [part.astype("int32") if part.dtype.kind == "i" else part for part in parts],
                {},
                [
                    np.array([2, 1, 3, 4], "float32"),
                    np.array([1, 0, 1, 2], "int32"),
                    np.array([0, 1, 2, 4], "int32"),
                ],
                runtime=(),
            ),
            Case("back", "nn.sparse_dense", [x, *parts], {}, x @ SQUARE.T),
        ]
    )
    transposed.check("transpose")
    transposed.check("back")


def test_refusals() -> None:
    refuses("nn.sparse_dense", [X[:, :3], *CSR], {}, "indices beyond its 3 columns")
    refuses("nn.sparse_conv2d", [IMAGE, *BSR], {"kernel_size": [3, 3]}, r"kernel_size is \[3, 3\]")
    shapes = [np.array([3, 4]), np.array([5, 2])]
    refuses("sparse_reshape", [PLACES, *shapes], {}, r"the shape \[3, 4\] can't become \[5, 2\]")
