"""Strided views against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_ext.schedules.strided_view import StridedView

_BUFFER = np.arange(2 * 3 * 4 * 6)


def _elements(view: StridedView) -> np.ndarray:
    """What a view reads of the buffer, by its index arithmetic."""
    at = np.indices(view.shape).reshape(len(view.shape), -1).T
    read = [_BUFFER[view.index([int(i) for i in index])] for index in at]
    return np.array(read, _BUFFER.dtype).reshape(view.shape)


@st.composite
def _chains(draw: st.DrawFn) -> list[tuple]:
    """Operations on a 2 x 3 x 4 x 6 tensor, drawn without knowing which have a view."""
    shape, steps = [2, 3, 4, 6], []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["permute", "slice", "reshape", "broadcast"]))
        if kind == "permute":
            axes = draw(st.permutations(range(len(shape))))
            shape = [shape[a] for a in axes]
            steps.append((kind, axes))
        elif kind == "slice":
            axis = draw(st.integers(0, len(shape) - 1))
            step = draw(st.sampled_from([1, 2, -1]))
            begin = draw(st.integers(0, shape[axis] - 1))
            most = shape[axis] - begin if step > 0 else begin + 1
            count = draw(st.integers(1, -(-most // abs(step))))
            shape[axis] = count
            steps.append((kind, axis, begin, count, step))
        elif kind == "broadcast":
            shape = [draw(st.sampled_from([1, 2])), *(n if n != 1 else 3 for n in shape)]
            steps.append((kind, tuple(shape)))
        else:
            flat = int(np.prod(shape))
            divisors = [d for d in range(1, flat + 1) if flat % d == 0]
            first = draw(st.sampled_from(divisors))
            second = draw(st.sampled_from([d for d in divisors if (flat // first) % d == 0]))
            shape = [first, second, flat // first // second]
            steps.append((kind, tuple(shape)))
    return steps


def _numpy(array: np.ndarray, step: tuple) -> np.ndarray:
    kind, *args = step
    if kind == "permute":
        return array.transpose(args[0])
    if kind == "broadcast":
        return np.broadcast_to(array, args[0])
    if kind == "reshape":
        return array.reshape(args[0])
    axis, begin, count, stride = args
    return array.take([begin + stride * i for i in range(count)], axis)


@given(_chains())
def test_views_read_what_numpy_does(steps: list[tuple]) -> None:
    view, array = StridedView.contiguous((2, 3, 4, 6)), _BUFFER.reshape(2, 3, 4, 6)
    for step in steps:
        array = _numpy(array, step)
        made = getattr(view, step[0])(*step[1:])
        if made is None:
            return
        view = made
        assert view.shape == array.shape
        np.testing.assert_array_equal(_elements(view), array)


@given(_chains())
def test_a_reshape_without_copy_in_numpy_has_a_view(steps: list[tuple]) -> None:
    view = StridedView.contiguous((2, 3, 4, 6))
    for step in steps:
        made = getattr(view, step[0])(*step[1:])
        if made is None:
            strides = [8 * s for s in view.strides]
            whole = np.lib.stride_tricks.as_strided(_BUFFER, view.shape, strides)
            with pytest.raises((AttributeError, ValueError)):
                whole.view().shape = step[1]
            return
        view = made


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (StridedView.contiguous((2, 3)), True),
        (StridedView.contiguous((2, 3)).permute((1, 0)), False),
        (StridedView.contiguous((1, 3)).permute((1, 0)), True),
        (StridedView.contiguous((4, 3)).slice(0, 1, 2), True),
        (StridedView.contiguous((4, 3)).slice(1, 1, 2), False),
        (StridedView.contiguous((3,)).broadcast((2, 3)), False),
    ],
)
def test_contiguous(view: StridedView, expected: bool) -> None:
    assert view.is_contiguous is expected


@pytest.mark.parametrize("factors", [(1, 1), (3, 1)])
def test_repeated_where_all_elements_are_one(factors: tuple[int, ...]) -> None:
    view = StridedView.contiguous((1, 4)).repeat(factors)
    assert view is not None
    want = _BUFFER[:4].reshape(1, 4).repeat(factors[0], axis=0)
    np.testing.assert_array_equal(_elements(view), want)


def test_repeated_broadcast() -> None:
    view = StridedView.contiguous((1, 4)).broadcast((2, 4)).repeat((3, 1))
    assert view == StridedView((6, 4), (0, 1))


def test_neighbours_that_repeat_have_no_stride() -> None:
    assert StridedView.contiguous((2, 4)).repeat((1, 2)) is None


def test_empty() -> None:
    assert StridedView.contiguous((0, 3)).reshape((3, 0)) == StridedView.contiguous((3, 0))
