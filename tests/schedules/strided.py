"""Products of NumPy's own views: what they are in a workload, and their float64 result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.schedules import oracles
from tests.schedules.kernels import Case, run_all
from tvm_ext.schedules.epilogue import Epilogue
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView

# Gives the part of a tensor in which a result is stored.
Place = Callable[[np.ndarray], np.ndarray]


def seen(array: np.ndarray, view: StridedView) -> np.ndarray:
    """NumPy's view of an array."""
    strides = [array.itemsize * s for s in view.strides]
    return np.lib.stride_tricks.as_strided(array.ravel()[view.offset :], view.shape, strides)


def stored(result: np.ndarray, w: MatmulWorkload) -> np.ndarray:
    """The result's tensor; NaN wherever nothing is stored."""
    whole = np.full(w.out_shape, np.nan)
    seen(whole, w.out)[...] = result
    return whole


def view_of(part: np.ndarray) -> tuple[StridedView, np.ndarray]:
    """The view that a NumPy view is, and the tensor that it is of."""
    whole = part if part.base is None else part.base
    offset = (part.ctypes.data - whole.ctypes.data) // part.itemsize
    return StridedView(part.shape, tuple(s // part.itemsize for s in part.strides), offset), whole


def product(
    left: np.ndarray,
    right: np.ndarray,
    out_shape: tuple[int, ...] = (),
    place: Place = lambda whole: whole,
    epilogue: Epilogue | None = None,
    **params: object,
) -> tuple[Case, np.ndarray]:
    """`batch_matmul` of two views, stored in a part of a tensor of `out_shape`."""
    lhs, left_whole = view_of(left)
    rhs, right_whole = view_of(right)
    whole = np.full(out_shape or np.matmul(left, right).shape, np.nan)
    out, _ = view_of(place(whole))
    w = MatmulWorkload.of(
        left_whole.shape, right_whole.shape, whole.shape, lhs=lhs, rhs=rhs, out=out,
        epilogue=epilogue or Epilogue(),
    )  # fmt: skip
    operands = oracles.operands_of(w)
    with np.errstate(invalid="ignore"):  # raised by lanes of OpenBLAS that nothing reads
        place(whole)[...] = oracles.finished(left.astype("float64") @ right, w, operands)
    data = [left_whole, right_whole]
    return Case("batch_matmul", w, data, [], operands, params=params), whole


def agree(cases: Mapping[object, tuple[Case, np.ndarray]], tolerance: float) -> None:
    """As `oracles.agree`, where results don't fill their tensors."""
    results = run_all([case for case, _ in cases.values()])
    for name, actual, (_, expected) in zip(cases, results, cases.values(), strict=True):
        atol = tolerance * np.nanmax(np.abs(expected))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=atol, err_msg=str(name))
