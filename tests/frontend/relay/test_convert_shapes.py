"""Operators that move the elements of tensors, and products of matrices, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases, refuses
from tvm_ext.errors import ModelError
from tvm_ext.frontend.relay.converters.shapes import reshaped

X, Y = normal(2, 3, 4), normal(2, 3, 4, seed=1)
IMAGE = normal(1, 8, 4, 6)


def space_to_depth(x: np.ndarray, b: int) -> np.ndarray:
    n, c, h, w = x.shape
    return np.stack([x[:, :, i::b, j::b] for i in range(b) for j in range(b)], axis=1).reshape(
        n, b * b * c, h // b, w // b
    )


def space_to_batch(x: np.ndarray, b: int, pads: list[tuple[int, int]]) -> np.ndarray:
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    return np.concatenate([x[:, i::b, j::b] for i in range(b) for j in range(b)])


NHWC = IMAGE.transpose(0, 2, 3, 1)
CASES = Cases(
    [
        Case("reshape", "reshape", [X], {"newshape": [0, -1]}, X.reshape(2, 12)),
        Case("reshape_merge", "reshape", [X], {"newshape": [-3, 0]}, X.reshape(6, 4)),
        Case("dyn_reshape", "dyn.reshape", [X, np.array([4, -1])], {}, X.reshape(4, 6)),
        Case(
            "reverse_reshape",
            "contrib_reverse_reshape",
            [X],
            {"newshape": [-1, 0]},
            X.reshape(6, 4),
        ),
        Case("reshape_like", "reshape_like", [X, normal(6, 4)], {}, X.reshape(6, 4)),
        Case("expand", "expand_dims", [X], {"axis": 1, "num_newaxis": 2}, X[:, None, None]),
        Case("expand_last", "expand_dims", [X], {"axis": -1}, X[..., None]),
        Case("squeeze", "squeeze", [X[None, :, :1]], {}, X[:, 0]),
        Case("squeeze_axis", "squeeze", [X[None, :, :1]], {"axis": [0]}, X[:, :1]),
        Case("transpose", "transpose", [X], {"axes": None}, X.T),
        Case("transpose_axes", "transpose", [X], {"axes": [1, -1, 0]}, X.transpose(1, 2, 0)),
        Case(
            "to_blocks",
            "layout_transform",
            [IMAGE],
            {"src_layout": "NCHW", "dst_layout": "NCHW4c"},
            IMAGE.reshape(1, 2, 4, 4, 6).transpose(0, 1, 3, 4, 2),
        ),
        Case(
            "from_blocks",
            "layout_transform",
            [IMAGE.reshape(1, 2, 4, 4, 6).transpose(0, 1, 3, 4, 2)],
            {"src_layout": "NCHW4c", "dst_layout": "NHWC"},
            NHWC,
        ),
        Case(
            "broadcast_to",
            "broadcast_to",
            [X[:, :1]],
            {"shape": [5, 2, 3, 4]},
            np.broadcast_to(X[:, :1], (5, 2, 3, 4)),
        ),
        Case("broadcast_like", "broadcast_to_like", [X[:1], X], {}, X[:1].repeat(2, 0)),
        Case(
            "collapse",
            "collapse_sum_like",
            [X, X[0, :, :1]],
            {},
            X.sum((0, 2))[:, None],
        ),
        Case("concat", "concatenate", [(X, Y)], {"axis": -1}, np.concatenate([X, Y], -1)),
        Case("stack", "stack", [(X, Y)], {"axis": 1}, np.stack([X, Y], 1)),
        Case(
            "split",
            "split",
            [X],
            {"indices_or_sections": [1], "axis": 1},
            np.split(X, [1], 1),
        ),
        Case(
            "split_equal",
            "split",
            [X],
            {"indices_or_sections": 2, "axis": -1},
            np.split(X, 2, -1),
        ),
        Case("split_one", "split", [X], {"indices_or_sections": 1}, [X]),
        Case(
            "fifo",
            "nn.fifo_buffer",
            [X, Y],
            {"axis": 2},
            X,
        ),
        Case(
            "pad",
            "nn.pad",
            [X, np.array(2.0, "float32")],
            {"pad_width": [[0, 0], [1, 0], [2, 1]], "pad_mode": "constant"},
            np.pad(X, [(0, 0), (1, 0), (2, 1)], constant_values=2),
        ),
        Case(
            "pad_edge",
            "nn.pad",
            [X, np.array(0.0, "float32")],
            {"pad_width": [[0, 0], [1, 0], [2, 1]], "pad_mode": "edge"},
            np.pad(X, [(0, 0), (1, 0), (2, 1)], "edge"),
        ),
        Case(
            "mirror",
            "nn.mirror_pad",
            [X],
            {"pad_width": [[0, 0], [1, 2], [2, 1]], "mode": "REFLECT"},
            np.pad(X, [(0, 0), (1, 2), (2, 1)], "reflect"),
        ),
        Case(
            "symmetric",
            "nn.mirror_pad",
            [X],
            {"pad_width": [[0, 0], [1, 2], [2, 1]]},
            np.pad(X, [(0, 0), (1, 2), (2, 1)], "symmetric"),
        ),
        # Relay leaves the mode of this direction empty.
        Case(
            "s2d",
            "nn.space_to_depth",
            [IMAGE],
            {"block_size": 2, "mode": ""},
            space_to_depth(IMAGE, 2),
        ),
        Case("d2s", "nn.depth_to_space", [space_to_depth(IMAGE, 2)], {"block_size": 2}, IMAGE),
        Case(
            "d2s_nhwc",
            "nn.depth_to_space",
            [space_to_depth(IMAGE, 2).transpose(0, 2, 3, 1)],
            {"block_size": 2, "layout": "NHWC"},
            NHWC,
        ),
        Case(
            "s2b",
            "nn.space_to_batch_nd",
            [NHWC],
            {"block_shape": [2, 2], "paddings": [[1, 1], [0, 2]]},
            space_to_batch(NHWC, 2, [(1, 1), (0, 2)]),
        ),
        Case(
            "b2s",
            "nn.batch_to_space_nd",
            [space_to_batch(NHWC, 2, [(1, 1), (0, 2)])],
            {"block_shape": [2, 2], "crops": [[1, 1], [0, 2]]},
            NHWC,
        ),
        Case("dense", "nn.dense", [X[0], Y[1]], {"units": 3}, X[0] @ Y[1].T),
        Case(
            "dense_pack",
            "nn.contrib_dense_pack",
            [X[0], Y.reshape(6, 4).reshape(2, 3, 4).transpose(0, 2, 1)],
            {"weight_layout": "NC3n"},
            X[0] @ Y.reshape(6, 4).T,
        ),
        Case("matmul", "nn.matmul", [X[0], Y[1]], {"transpose_a": True}, X[0].T @ Y[1]),
        Case(
            "batch_matmul",
            "nn.batch_matmul",
            [X, Y],
            {"transpose_b": True},
            X @ Y.transpose(0, 2, 1),
            runtime=(0, 1),
        ),
        Case(
            "einsum",
            "einsum",
            [(X, Y)],
            {"equation": "bij, bkj -> bik"},
            np.einsum("bij,bkj->bik", X, Y),
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


@pytest.mark.parametrize(
    ("shape", "codes", "expected"),
    [
        # The examples of MXNet's documentation, from which Relay has the codes.
        ((2, 3, 4), [4, 0, 2], [4, 3, 2]),
        ((2, 3, 4), [2, 0, 0], [2, 3, 4]),
        ((2, 3, 4), [6, 1, -1], [6, 1, 4]),
        ((2, 3, 4), [3, -1, 8], [3, 1, 8]),
        ((2, 3, 4), [-1], [24]),
        ((2, 3, 4), [-2], [2, 3, 4]),
        ((2, 3, 4), [2, -2], [2, 3, 4]),
        ((2, 3, 4), [-2, 1, 1], [2, 3, 4, 1, 1]),
        ((2, 3, 4), [-3, 4], [6, 4]),
        ((2, 3, 4, 5), [-3, -3], [6, 20]),
        ((2, 3, 4), [0, -3], [2, 12]),
        ((2, 3, 4), [-3, -2], [6, 4]),
        ((2, 3, 4), [-4, 1, 2, -2], [1, 2, 3, 4]),
        ((2, 3, 4), [2, -4, -1, 3, -2], [2, 1, 3, 4]),
    ],
)
def test_codes_of_reshape(shape: tuple[int, ...], codes: list[int], expected: list[int]) -> None:
    assert reshaped(shape, codes) == expected


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_codes_keep_the_elements(shape: list[int], data: st.DataObject) -> None:
    codes = [data.draw(st.sampled_from([0, n])) for n in shape]
    codes[data.draw(st.integers(0, len(shape) - 1))] = -1
    assert reshaped(shape, codes) == shape


@pytest.mark.parametrize("codes", [[5, -1], [-1, -1], [0, 0, 0, 0], [-4, 2], [-9], [2, 3]])
def test_codes_that_do_not_fit(codes: list[int]) -> None:
    with pytest.raises(ModelError, match=r"newshape .* doesn't fit the shape \(2, 3, 4\)"):
        reshaped((2, 3, 4), codes)


@pytest.mark.parametrize(
    ("op", "args", "attrs", "message"),
    [
        ("split", [X], {"indices_or_sections": 3, "axis": 2}, "which must divide 4"),
        ("squeeze", [X], {"axis": [1]}, "more than one element"),
        ("nn.pad", [X, np.array(0.0)], {"pad_width": [[0, 0]]}, "a pair for each of 3"),
        ("nn.pad", [X], {"pad_width": [[0, 0]] * 3, "pad_mode": "x"}, "constant, edge, reflect"),
        ("reshape", [X], {}, "'newshape' is missing"),
    ],
)
def test_refusals(op, args, attrs, message) -> None:
    refuses(op, args, attrs, message)
