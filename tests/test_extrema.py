"""Largest and smallest numbers along axes, and their positions, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm_ext
from tests import models

EXTREMA = ("ReduceMax", "ReduceMin", "ArgMax", "ArgMin")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int64"])
def test_extrema_along_axes_against_numpy(dtype: str) -> None:
    """Rows of infinities, of the type's limits, of ties; NaN is the result where there is one."""
    rng = np.random.default_rng(7)
    if dtype.startswith("float"):
        x = rng.standard_normal((2, 6, 7)).astype(dtype)
        x[0, 0], x[0, 1], x[0, 4] = -np.inf, np.inf, np.nan
        x[0, 2, 3], x[0, 3, 0], x[1, 0, :3] = np.nan, np.nan, np.inf
    else:
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, (2, 6, 7), dtype=dtype)
        x[0, 0], x[0, 1], x[0, 2, [1, 4]] = limits.min, limits.max, limits.max
    nodes: list[tuple[str, list[str], dict[str, Any]]] = []
    wanted = []
    for name, axes in (("last", (2,)), ("middle", (1,)), ("two", (0, 2)), ("all", (0, 1, 2))):
        for keep in (True, False):
            nodes += [(op, ["x", name], {"keepdims": int(keep)}) for op in EXTREMA[:2]]
            wanted += [x.max(axes, keepdims=keep), x.min(axes, keepdims=keep)]
    for axis in range(3):
        for last in (False, True):
            y = np.flip(x, axis) if last else x
            nodes += [
                (op, ["x"], {"axis": axis, "keepdims": 0, "select_last_index": int(last)})
                for op in EXTREMA[2:]
            ]
            at = [y.argmax(axis), y.argmin(axis)]
            wanted += [x.shape[axis] - 1 - i for i in at] if last else at
    axes = {"last": [2], "middle": [1], "two": [0, 2], "all": [0, 1, 2]}
    weights = {name: np.array(value) for name, value in axes.items()}
    for node, ours, want in zip(
        nodes, tvm_ext.build(models.operators(nodes, {"x": x}, weights))(x), wanted, strict=True
    ):
        np.testing.assert_array_equal(ours, want, err_msg=str(node))
        assert ours.shape == want.shape
